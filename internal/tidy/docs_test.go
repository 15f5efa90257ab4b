package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// PackageComments checks that every package has a comment.
var PackageComments = Rule{
	Name: "package comments",
	Doc:  "every package has one package comment; in strategies, device, alloc and props it is in doc.go",
	Check: func(h *Repository, report Report) {
		for _, p := range h.Packages {
			var with []*File
			first := ""
			for _, f := range p.Files {
				if f.Test {
					continue
				}
				if first == "" {
					first = f.Name
				}
				if f.AST.Doc != nil {
					with = append(with, f)
				}
			}
			switch {
			case first == "": // tests only
			case len(with) == 0:
				report(first, 1, "package %s has no package comment", p.Name)
			case len(with) > 1:
				report(with[1].Name, 1, "package %s has a second package comment", p.Name)
			default:
				checkPackageComment(p, with[0], h, report)
			}
		}
	},
}

// documented are the rooms whose package comments are in a file of their own.
var documented = []string{"strategies", "device", "alloc", "props"}

// checkPackageComment judges the one package comment of p, which stands in f.
func checkPackageComment(p *Package, f *File, h *Repository, report Report) {
	want := "Package " + p.Name + " "
	if p.Name == "main" {
		want = "Command "
	}
	if !strings.HasPrefix(f.AST.Doc.Text(), want) {
		report(f.Name, h.Line(f.AST.Doc.Pos()), "package comment does not begin with %q", want)
	}
	if underAny(p.Dir, documented) && !strings.HasSuffix(f.Name, "/doc.go") {
		report(f.Name, h.Line(f.AST.Doc.Pos()), "the package comment of %s belongs in doc.go", p.Dir)
	}
}

// DocComments checks that every exported name is explained.
var DocComments = Rule{
	Name: "doc comments",
	Doc: "every exported name, interface method and struct field has a comment that begins with the name " +
		"(fields: any phrase); a method that an interface documents may go without",
	Check: func(h *Repository, report Report) {
		documented := interfaceMethods(h)
		h.each(false, func(_ *Package, f *File) {
			d := docChecker{h: h, f: f, report: report, documented: documented}
			for _, decl := range f.AST.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					d.function(decl)
				case *ast.GenDecl:
					d.group(decl)
				}
			}
		})
	},
}

// standardMethods are the methods of the standard library's interfaces that our types implement.
var standardMethods = []string{"Close", "Error", "Import", "Len", "Less", "MarshalJSON", "MarshalText", "Read",
	"ReadAt", "Seek", "ServeHTTP", "String", "Swap", "UnmarshalJSON", "UnmarshalText", "Unwrap", "Write"}

// interfaceMethods returns the names of all methods of the exported interfaces of a tree and of the
// standard library. Whether a type implements the interface is left to the compiler.
func interfaceMethods(h *Repository) map[string]bool {
	names := map[string]bool{}
	for _, name := range standardMethods {
		names[name] = true
	}
	h.each(false, func(_ *Package, f *File) {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			if t, ok := spec.Type.(*ast.InterfaceType); ok {
				for _, field := range t.Methods.List {
					for _, name := range field.Names {
						names[name.Name] = true
					}
				}
			}
			return false
		})
	})
	return names
}

// docChecker checks the comments of one file.
type docChecker struct {
	h          *Repository
	f          *File
	report     Report
	documented map[string]bool // methods that interfaces document
}

func (d docChecker) flag(at ast.Node, format string, args ...any) {
	d.report(d.f.Name, d.h.Line(at.Pos()), format, args...)
}

// named checks that doc is there and begins with one of the names.
func (d docChecker) named(at ast.Node, doc *ast.CommentGroup, names ...string) {
	text := doc.Text()
	if strings.TrimSpace(text) == "" {
		d.flag(at, "%s has no comment", names[0])
		return
	}
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	first, _, _ := strings.Cut(strings.ReplaceAll(text, "\n", " "), " ")
	if !slices.Contains(names, strings.TrimRight(first, ".,:;")) {
		d.flag(at, "the comment of %s does not begin with the name", names[0])
	}
}

// function checks an exported function, or an exported method of an exported type.
func (d docChecker) function(decl *ast.FuncDecl) {
	if !decl.Name.IsExported() {
		return
	}
	if decl.Recv != nil && (!ast.IsExported(receiver(decl)) || decl.Doc == nil && d.documented[decl.Name.Name]) {
		return
	}
	d.named(decl, decl.Doc, decl.Name.Name)
}

// receiver returns the name of the type whose method decl is, "" for a function.
func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return ""
	}
	t := decl.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// group checks the types, constants or variables of one declaration.
func (d docChecker) group(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			d.typeSpec(decl, spec)
		case *ast.ValueSpec:
			d.valueSpec(decl, spec)
		}
	}
}

// typeSpec checks an exported type with its fields and methods.
func (d docChecker) typeSpec(decl *ast.GenDecl, spec *ast.TypeSpec) {
	if !spec.Name.IsExported() {
		return
	}
	doc := spec.Doc
	if doc == nil && !decl.Lparen.IsValid() {
		doc = decl.Doc
	}
	d.named(spec, doc, spec.Name.Name)
	ast.Inspect(spec.Type, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			d.fields(spec.Name.Name, n.Fields)
		case *ast.InterfaceType:
			d.methods(spec.Name.Name, n.Methods)
		case *ast.FuncType:
			return false // the interfaces and structs of a signature are no API of their own
		}
		return true
	})
}

// fields checks the exported fields of a struct. Embedded fields need no comment.
func (d docChecker) fields(owner string, list *ast.FieldList) {
	for _, field := range list.List {
		exported := slices.ContainsFunc(field.Names, func(n *ast.Ident) bool { return n.IsExported() })
		if exported && field.Doc == nil && field.Comment == nil {
			d.flag(field, "field %s.%s has no comment", owner, field.Names[0].Name)
		}
	}
}

func (d docChecker) methods(owner string, list *ast.FieldList) {
	for _, m := range list.List {
		switch {
		case len(m.Names) == 0: // embedded, or a type set
		case m.Doc == nil:
			d.flag(m, "method %s.%s has no comment", owner, m.Names[0].Name)
		default:
			d.named(m, m.Doc, m.Names[0].Name)
		}
	}
}

// valueSpec checks exported constants and variables. In a group, its comment or the
// comment beside a name is enough.
func (d docChecker) valueSpec(decl *ast.GenDecl, spec *ast.ValueSpec) {
	var exported []string
	for _, n := range spec.Names {
		if n.IsExported() {
			exported = append(exported, n.Name)
		}
	}
	grouped := decl.Lparen.IsValid()
	switch {
	case len(exported) == 0:
	case !grouped:
		d.named(spec, decl.Doc, exported...)
	case spec.Doc != nil:
		d.named(spec, spec.Doc, exported...)
	case decl.Doc == nil && spec.Comment == nil:
		what := "constant"
		if decl.Tok == token.VAR {
			what = "variable"
		}
		d.flag(spec, "%s %s has no comment, nor has its group", what, exported[0])
	}
}

// Examples checks that every public package shows how it is used.
var Examples = Rule{
	Name: "examples",
	Doc:  "every package that others can import, and that exports a name, has an Example function",
	Check: func(h *Repository, report Report) {
		for _, p := range h.Packages {
			if p.Name == "main" || slices.Contains(strings.Split(p.Dir, "/"), "internal") {
				continue
			}
			first, shown := "", false // file that exports a name; there is an Example
			for _, f := range p.Files {
				for _, decl := range f.AST.Decls {
					if fn, ok := decl.(*ast.FuncDecl); f.Test {
						shown = shown || ok && strings.HasPrefix(fn.Name.Name, "Example")
					} else if first == "" && exports(decl) {
						first = f.Name
					}
				}
			}
			if first != "" && !shown {
				report(first, 1, "package %s has no Example", p.Name)
			}
		}
	},
}

// exports reports whether a declaration adds an exported name to its package.
func exports(decl ast.Decl) bool {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		return decl.Recv == nil && decl.Name.IsExported()
	case *ast.GenDecl:
		return slices.ContainsFunc(decl.Specs, func(spec ast.Spec) bool {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				return spec.Name.IsExported()
			case *ast.ValueSpec:
				return slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported)
			}
			return false
		})
	}
	return false
}
