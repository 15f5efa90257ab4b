package tidy

import (
	"go/ast"
	"strconv"
	"strings"
)

// Powers checks that wrappers pass on every power of a strategy.
var Powers = Rule{
	Name: "powers",
	Doc: "every interface in alloc/power.go has a constant; every constant has a name, a case in Implements, " +
		"and the methods of its interface on *Forwarder",
	Check: func(h *House, report Report) {
		p := h.Package("alloc")
		if p == nil {
			return
		}
		c := powerChecker{
			h: h, report: report, names: -1,
			interfaces: map[string]*ast.InterfaceType{}, cases: map[string]string{}, methods: map[string]bool{},
		}
		for _, f := range p.Files {
			if !f.Test {
				c.collect(f)
			}
		}
		c.judge()
	},
}

// powerChecker gathers what alloc says about powers.
type powerChecker struct {
	h          *House
	report     Report
	file       *File                         // alloc/power.go
	interfaces map[string]*ast.InterfaceType // of the package, by name
	order      []string                      // names of those exported in power.go, in order
	constants  []*ast.Ident                  // PowerX, in order
	names      int                           // elements of powerNames; -1 without it
	cases      map[string]string             // PowerX to the interface that its case asserts
	methods    map[string]bool               // of Forwarder
}

// collect reads one file.
func (c *powerChecker) collect(f *File) {
	if f.Name == "alloc/power.go" {
		c.file = f
	}
	for _, decl := range f.AST.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if receiver(decl) == "Forwarder" {
				c.methods[decl.Name.Name] = true
			}
			if f == c.file && decl.Recv == nil && decl.Name.Name == "Implements" {
				c.readCases(decl)
			}
		case *ast.GenDecl:
			c.readSpecs(decl, f == c.file)
		}
	}
}

// readSpecs gathers interfaces and, in power.go, constants and the table of names.
func (c *powerChecker) readSpecs(decl *ast.GenDecl, inPower bool) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if it, ok := spec.Type.(*ast.InterfaceType); ok && spec.Name.IsExported() {
				c.interfaces[spec.Name.Name] = it
				if inPower {
					c.order = append(c.order, spec.Name.Name)
				}
			}
		case *ast.ValueSpec:
			if !inPower {
				continue
			}
			for i, n := range spec.Names {
				if strings.HasPrefix(n.Name, "Power") {
					c.constants = append(c.constants, n)
				}
				if n.Name == "powerNames" && i < len(spec.Values) {
					if lit, ok := spec.Values[i].(*ast.CompositeLit); ok {
						c.names = len(lit.Elts)
					}
				}
			}
		}
	}
}

// readCases gathers which interface each case of Implements asserts.
func (c *powerChecker) readCases(decl *ast.FuncDecl) {
	ast.Inspect(decl, func(n ast.Node) bool {
		clause, ok := n.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, e := range clause.List {
			id, ok := e.(*ast.Ident)
			if !ok {
				continue
			}
			for _, s := range clause.Body {
				ast.Inspect(s, func(n ast.Node) bool {
					if a, ok := n.(*ast.TypeAssertExpr); ok {
						if t, ok := a.Type.(*ast.Ident); ok {
							c.cases[id.Name] = t.Name
						}
					}
					return true
				})
			}
		}
		return true
	})
}

// judge reports what is missing.
func (c *powerChecker) judge() {
	if c.file == nil {
		return
	}
	constants := map[string]bool{}
	for _, k := range c.constants {
		constants[k.Name] = true
		want := strings.TrimPrefix(k.Name, "Power")
		line := c.h.Line(k.Pos())
		if got := c.cases[k.Name]; got == "" {
			c.report(c.file.Name, line, "%s has no case in Implements", k.Name)
		} else if got != want {
			c.report(c.file.Name, line, "the case of %s in Implements asks for %s", k.Name, got)
		}
	}
	if c.names != len(c.constants) {
		c.report(c.file.Name, 0, "powerNames has %s, there are %d powers", count(c.names), len(c.constants))
	}
	for _, name := range c.order {
		if !constants["Power"+name] {
			c.report(c.file.Name, c.h.Line(c.interfaces[name].Pos()), "interface %s has no constant Power%s", name, name)
			c.judgeMethods(name)
		}
	}
	for _, k := range c.constants {
		c.judgeMethods(strings.TrimPrefix(k.Name, "Power"))
	}
}

// judgeMethods reports the methods of an interface that Forwarder lacks.
func (c *powerChecker) judgeMethods(name string) {
	it := c.interfaces[name]
	if it == nil {
		return // the case in Implements does not compile
	}
	for _, m := range it.Methods.List {
		for _, n := range m.Names {
			if !c.methods[n.Name] {
				at := c.h.Fset.Position(n.Pos())
				c.report(at.Filename, at.Line, "%s.%s has no method on *Forwarder", name, n.Name)
			}
		}
	}
}

// count writes the length of a table that may be missing.
func count(n int) string {
	if n < 0 {
		return "no table"
	}
	return strconv.Itoa(n) + " names"
}
