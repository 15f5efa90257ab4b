// Command apigate compares the public API with the record in docs/api.
//
//	apigate [-update] ROOT PACKAGE...
//
// For each package, a directory below ROOT, docs/api has a file with the declarations
// that make up its interface, without comments and bodies. The program reads them as an
// older version of the package and prints what has changed since. It exits with 1 if
// anything has, so that a change is always seen in a diff of docs/api; with -update it
// rewrites the records instead.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
)

func main() {
	update := flag.Bool("update", false, "rewrite the records")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: apigate [-update] ROOT PACKAGE...")
		os.Exit(2)
	}
	changed, err := run(flag.Arg(0), flag.Args()[1:], *update)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "apigate:", err)
		os.Exit(2)
	case changed && !*update:
		fmt.Println("The public contract has changed. If that is wanted: bash .ci/api -update, see CONTRIBUTING.md.")
		os.Exit(1)
	}
}

// run compares every package, reports each change and, if told to, records it.
func run(root string, dirs []string, update bool) (changed bool, err error) {
	var patterns []string
	for _, d := range dirs {
		patterns = append(patterns, "./"+d)
	}
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, patterns...)
	if err != nil {
		return false, err
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return false, p.Errors[0]
		}
		name := strings.ReplaceAll(p.PkgPath[strings.LastIndex(p.PkgPath, "vramyard/")+len("vramyard/"):], "/", "_")
		record := filepath.Join(root, "docs", "api", name+".txt")
		now, err := interfaceOf(p)
		if err != nil {
			return false, err
		}
		differs, err := compare(p, record)
		if err != nil && !update {
			return false, err
		}
		changed = changed || differs
		if update {
			if err := os.WriteFile(record, now, 0o644); err != nil {
				return false, err
			}
		}
	}
	return changed, nil
}

// compare prints what has changed in p since the record was written. No record is a
// change too.
func compare(p *packages.Package, record string) (changed bool, err error) {
	source, err := os.ReadFile(record)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("%s: no record\n", p.PkgPath)
		return true, nil
	}
	if err != nil {
		return false, err
	}
	old, err := check(p, record, source)
	if err != nil {
		return false, fmt.Errorf("the record of %s is no longer understood: %w", p.PkgPath, err)
	}
	report := apidiff.Changes(old, p.Types)
	if len(report.Changes) == 0 {
		fmt.Printf("%s: as recorded\n", p.PkgPath)
		return false, nil
	}
	fmt.Printf("%s:\n", p.PkgPath)
	return true, report.Text(os.Stdout)
}

// check type-checks a record as a package. Its imports are the present ones of p.
func check(p *packages.Package, record string, source []byte) (*types.Package, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, filepath.Base(record), source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var problems []error
	conf := types.Config{
		Importer: imports(p.Imports),
		Error: func(err error) {
			if !strings.HasSuffix(err.Error(), "missing function body") {
				problems = append(problems, err)
			}
		},
	}
	pkg, _ := conf.Check(p.PkgPath, fset, []*ast.File{file}, nil) // its error is the first of those gathered
	return pkg, errors.Join(problems...)
}

// imports finds packages among those already loaded.
type imports map[string]*packages.Package

func (m imports) Import(p string) (*types.Package, error) {
	if found := m[p]; found != nil {
		return found.Types, nil
	}
	return nil, fmt.Errorf("package %s is no longer imported", p)
}

// interfaceOf returns the declarations of p that others can see, as one Go file: types
// and constants whole, variables with their types, functions without bodies.
func interfaceOf(p *packages.Package) ([]byte, error) {
	var body bytes.Buffer
	var specs []*ast.ImportSpec
	for _, f := range p.Syntax {
		specs = append(specs, f.Imports...)
		for _, decl := range f.Decls {
			if err := write(&body, p, decl); err != nil {
				return nil, err
			}
		}
	}
	head := fmt.Sprintf("// The interface of package %s. Written by .ci/api -update.\n\npackage %s\n\n", p.PkgPath, p.Name)
	return format.Source([]byte(head + importsOf(p, body.String(), specs) + body.String()))
}

// importsOf returns the imports that the declarations in body use, sorted.
func importsOf(p *packages.Package, body string, specs []*ast.ImportSpec) string {
	var used []string
	for _, spec := range specs {
		imported := strings.Trim(spec.Path.Value, `"`)
		name, line := p.Imports[imported].Name, "import "
		if spec.Name != nil {
			name = spec.Name.Name
			line += name + " "
		}
		if strings.Contains(body, name+".") {
			used = append(used, line+spec.Path.Value+"\n")
		}
	}
	slices.Sort(used)
	return strings.Join(slices.Compact(used), "")
}

// write prints one exported declaration, and nothing for others.
func write(w *bytes.Buffer, p *packages.Package, decl ast.Decl) error {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if !decl.Name.IsExported() {
			return nil
		}
		decl.Body, decl.Doc = nil, nil
	case *ast.GenDecl:
		switch decl.Tok {
		case token.IMPORT:
			return nil
		case token.VAR:
			writeVariables(w, p, decl)
			return nil
		}
	}
	uncomment(decl)
	w.WriteString("\n")
	if err := format.Node(w, p.Fset, decl); err != nil {
		return err
	}
	w.WriteString("\n")
	return nil
}

// writeVariables prints the exported variables of a declaration with their types.
func writeVariables(w *bytes.Buffer, p *packages.Package, decl *ast.GenDecl) {
	qualify := func(other *types.Package) string {
		if other == p.Types {
			return ""
		}
		return path.Base(other.Path())
	}
	for _, spec := range decl.Specs {
		for _, n := range spec.(*ast.ValueSpec).Names {
			if n.IsExported() {
				fmt.Fprintf(w, "\nvar %s %s\n", n.Name, types.TypeString(p.TypesInfo.Defs[n].Type(), qualify))
			}
		}
	}
}

func uncomment(decl ast.Decl) {
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
}
