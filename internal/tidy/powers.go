package tidy

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// Powers checks that wrappers pass on every power of a strategy.
var Powers = Rule{
	Name: "powers",
	Doc: "every interface in alloc/power.go has a constant; every constant has a name, a case in Implements, " +
		"and the methods of its interface on *Forwarder",
	Check: abilities{pkg: "alloc", file: "alloc/power.go", prefix: "Power", table: "powerNames", many: "powers"}.check,
}

// Capabilities checks the same of devices.
var Capabilities = Rule{
	Name: "capabilities",
	Doc: "every interface in device/capability.go has a constant and a function that returns it; every constant has a " +
		"name, a case in Implements, and the methods of its interface on *Forwarder; every method has a kind of call",
	Check: abilities{
		pkg: "device", file: "device/capability.go", prefix: "Cap", table: "capabilityNames", many: "capabilities", ofDevice: true,
	}.check,
}

// abilities are the optional interfaces of a package: those exported in one file.
type abilities struct {
	pkg      string // directory
	file     string // in which the interfaces and their constants are
	prefix   string // of the constants
	table    string // their names, in lower case
	many     string // what they are called
	ofDevice bool   // each has a function XOf, and its methods are kinds of calls
}

// check is the rule over the package.
func (a abilities) check(h *House, report Report) {
	p := h.Package(a.pkg)
	if p == nil {
		return
	}
	c := abilityChecker{
		abilities: a, h: h, report: report, names: -1,
		interfaces: map[string]*ast.InterfaceType{}, cases: map[string]string{}, functions: map[string]bool{},
	}
	for _, f := range p.Files {
		if !f.Test {
			c.collect(f)
		}
	}
	c.judge()
}

// abilityChecker gathers what a package says about its abilities.
type abilityChecker struct {
	abilities
	h          *House
	report     Report
	listing    *File                         // the file of the abilities
	interfaces map[string]*ast.InterfaceType // of the package, by name
	order      []string                      // names of those exported in the file, in order
	constants  []*ast.Ident                  // of abilities, in order
	names      int                           // elements of the table of names; -1 without it
	cases      map[string]string             // constant to the interface that its case asserts
	calls      []*ast.Ident                  // constants CallX
	functions  map[string]bool               // of the package; methods as Receiver.Name
}

// collect reads one file.
func (c *abilityChecker) collect(f *File) {
	if f.Name == c.file {
		c.listing = f
	}
	for _, decl := range f.AST.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			name := decl.Name.Name
			if decl.Recv != nil {
				name = receiver(decl) + "." + name
			}
			c.functions[name] = true
			if f == c.listing && name == "Implements" {
				c.readCases(decl)
			}
		case *ast.GenDecl:
			c.readSpecs(decl, f == c.listing)
		}
	}
}

// readSpecs gathers interfaces and constants and, in the file of the abilities, the table of
// names.
func (c *abilityChecker) readSpecs(decl *ast.GenDecl, listed bool) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if it, ok := spec.Type.(*ast.InterfaceType); ok && spec.Name.IsExported() {
				c.interfaces[spec.Name.Name] = it
				if listed {
					c.order = append(c.order, spec.Name.Name)
				}
			}
		case *ast.ValueSpec:
			for i, n := range spec.Names {
				if strings.HasPrefix(n.Name, "Call") {
					c.calls = append(c.calls, n)
				}
				if listed && strings.HasPrefix(n.Name, c.prefix) {
					c.constants = append(c.constants, n)
				}
				if listed && n.Name == c.table && i < len(spec.Values) {
					if lit, ok := spec.Values[i].(*ast.CompositeLit); ok {
						c.names = len(lit.Elts)
					}
				}
			}
		}
	}
}

// readCases gathers which interface each case of Implements asserts.
func (c *abilityChecker) readCases(decl *ast.FuncDecl) {
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
func (c *abilityChecker) judge() {
	if c.listing == nil {
		return
	}
	constants := map[string]bool{}
	for _, k := range c.constants {
		constants[k.Name] = true
		want := strings.TrimPrefix(k.Name, c.prefix)
		line := c.h.Line(k.Pos())
		if got := c.cases[k.Name]; got == "" {
			c.report(c.file, line, "%s has no case in Implements", k.Name)
		} else if got != want {
			c.report(c.file, line, "the case of %s in Implements asks for %s", k.Name, got)
		}
	}
	if c.names != len(c.constants) {
		c.report(c.file, 0, "%s has %s, there are %d %s", c.table, count(c.names), len(c.constants), c.many)
	}
	for _, name := range c.order {
		if !constants[c.prefix+name] {
			line := c.h.Line(c.interfaces[name].Pos())
			c.report(c.file, line, "interface %s has no constant %s%s", name, c.prefix, name)
			c.judgeMethods(name)
		}
	}
	for _, k := range c.constants {
		c.judgeMethods(strings.TrimPrefix(k.Name, c.prefix))
	}
}

// judgeMethods reports the methods of an interface that Forwarder lacks, and what else each
// ability of a device needs.
func (c *abilityChecker) judgeMethods(name string) {
	it := c.interfaces[name]
	if it == nil {
		return // the case in Implements does not compile
	}
	if c.ofDevice && !c.functions[name+"Of"] {
		c.report(c.file, c.h.Line(it.Pos()), "interface %s has no function %sOf", name, name)
	}
	for _, m := range it.Methods.List {
		for _, n := range m.Names {
			at := c.h.Fset.Position(n.Pos())
			if !c.functions["Forwarder."+n.Name] {
				c.report(at.Filename, at.Line, "%s.%s has no method on *Forwarder", name, n.Name)
			}
			if c.ofDevice && !slices.ContainsFunc(c.calls, func(k *ast.Ident) bool { return k.Name == "Call"+n.Name }) {
				c.report(at.Filename, at.Line, "no kind of call stands for %s.%s", name, n.Name)
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
