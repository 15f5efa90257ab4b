package tidy

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Repository is a source tree, parsed.
type Repository struct {
	Module   string          // path of the module at the root
	Fset     *token.FileSet  // positions of every file, with names relative to the root
	Packages []*Package      // by directory, without nested modules and testdata
	Texts    []Text          // every text file of the tree, by name
	Names    map[string]bool // every file and directory of the tree, relative to the root
}

// Package is the Go files of one directory.
type Package struct {
	Dir   string  // relative to the root, "." for the root itself
	Name  string  // name of the package, without _test
	Files []*File // by name
}

// File is one parsed Go file.
type File struct {
	Name      string    // relative to the root
	Source    []byte    // content
	AST       *ast.File // with comments
	Test      bool      // the name ends in _test.go
	Generated bool      // has the standard comment of generated files
}

// Text is a text file.
type Text struct {
	Name    string // relative to the root
	Content []byte // whole file
}

// Finding is one place that breaks a rule.
type Finding struct {
	Rule string // name of the rule
	File string // relative to the root
	Line int    // 0 if the finding is about the whole file
	Text string // the problem
}

// String returns the finding in the form in which compilers report.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Text)
}

// Rule is one rule of the house.
type Rule struct {
	Name  string                             // short, lower case
	Doc   string                             // the requirement
	Check func(h *Repository, report Report) // reports every place that breaks it
}

// Report takes one finding: a file, a line, and the problem.
type Report func(file string, line int, format string, args ...any)

// Run returns what breaks the rule in h, by file and line.
func (r Rule) Run(h *Repository) []Finding {
	var all []Finding
	r.Check(h, func(file string, line int, format string, args ...any) {
		all = append(all, Finding{r.Name, file, line, fmt.Sprintf(format, args...)})
	})
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

// Load parses the tree at the root of fsys. It fails if a Go file does not parse.
func Load(fsys fs.FS) (*Repository, error) {
	h := &Repository{Fset: token.NewFileSet(), Names: map[string]bool{}}
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	h.Module = modulePath(mod)
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if skipped(name) {
				return fs.SkipDir
			}
			h.Names[name] = true
			return nil
		case !d.Type().IsRegular() || slices.Contains(strayAtRoot, name):
			return nil
		}
		h.Names[name] = true
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return h.add(fsys, name, content)
	})
	return h, err
}

// strayAtRoot lists files at the root that are not part of the tree: build outputs ignored by git,
// and the link of a linked work tree.
var strayAtRoot = []string{"vramyard", ".git"}

// skipped reports whether a directory is not part of the tree: git's own, and the output directory
// that git ignores.
func skipped(dir string) bool { return dir == ".git" || dir == "out" }

// modulePath returns the path that a go.mod file declares.
func modulePath(mod []byte) string {
	for line := range strings.Lines(string(mod)) {
		if rest, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// add takes one file into the house.
func (h *Repository) add(fsys fs.FS, name string, content []byte) error {
	if bytes.IndexByte(content[:min(len(content), 8000)], 0) < 0 {
		h.Texts = append(h.Texts, Text{name, content})
	}
	if path.Ext(name) != ".go" || !h.hasPackage(fsys, path.Dir(name)) {
		return nil
	}
	tree, err := parser.ParseFile(h.Fset, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &File{
		Name:      name,
		Source:    content,
		AST:       tree,
		Test:      strings.HasSuffix(name, "_test.go"),
		Generated: ast.IsGenerated(tree),
	}
	p := h.Package(path.Dir(name))
	if p == nil {
		p = &Package{Dir: path.Dir(name)}
		h.Packages = append(h.Packages, p)
	}
	p.Name = strings.TrimSuffix(tree.Name.Name, "_test")
	p.Files = append(p.Files, f)
	return nil
}

// hasPackage reports whether Go files in dir belong to the module at the root.
func (h *Repository) hasPackage(fsys fs.FS, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		base := path.Base(dir)
		if base == "testdata" || base[0] == '.' || base[0] == '_' {
			return false
		}
		if _, err := fs.Stat(fsys, path.Join(dir, "go.mod")); err == nil {
			return false
		}
	}
	return true
}

// Package returns the package of a directory, or nil.
func (h *Repository) Package(dir string) *Package {
	i := slices.IndexFunc(h.Packages, func(p *Package) bool { return p.Dir == dir })
	if i < 0 {
		return nil
	}
	return h.Packages[i]
}

// Line returns the line of a position.
func (h *Repository) Line(pos token.Pos) int { return h.Fset.Position(pos).Line }

// Under reports whether dir is root or lies below it.
func Under(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }

// underAny reports whether dir is one of the roots or lies below one.
func underAny(dir string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return Under(dir, r) })
}

// Dir returns the directory of the file.
func (f *File) Dir() string { return path.Dir(f.Name) }

// external reports whether the file is a test in a package of its own.
func (f *File) external() bool { return f.Test && strings.HasSuffix(f.AST.Name.Name, "_test") }

// each calls visit for every file of every package, test files only if tests is set.
func (h *Repository) each(tests bool, visit func(p *Package, f *File)) {
	for _, p := range h.Packages {
		for _, f := range p.Files {
			if tests || !f.Test {
				visit(p, f)
			}
		}
	}
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// importName returns the name under which f imports the given path, "" if it does not.
func importName(f *File, of string) string {
	for _, spec := range f.AST.Imports {
		if importPath(spec) != of {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		base := path.Base(of)
		if version.MatchString(base) {
			base = path.Base(path.Dir(of))
		}
		return base
	}
	return ""
}

// version matches the last element of an import path that is only a major version.
var version = regexp.MustCompile(`^v[0-9]+$`)
