package tidy

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
)

// MapRanges checks that the order of a map decides nothing.
var MapRanges = Rule{
	Name: "map ranges",
	Doc:  "strategies do not range over maps, nor over what package maps yields unless it is sorted",
	Check: func(h *Repository, report Report) {
		t := newTyper(h)
		for _, p := range h.Packages {
			if !Under(p.Dir, "strategies") {
				continue
			}
			for _, f := range p.Files {
				if !f.Test {
					checkRanges(h, f, t.typesOf(p), report)
					checkMapIterators(h, f, report)
				}
			}
		}
	},
}

// checkRanges reports ranges over maps. A type parameter counts as a map if it may be one.
func checkRanges(h *Repository, f *File, info *types.Info, report Report) {
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if r, ok := n.(*ast.RangeStmt); ok && isMap(info.TypeOf(r.X)) {
			report(f.Name, h.Line(r.Pos()), "ranges over a map, whose order changes from run to run")
		}
		return true
	})
}

// isMap reports whether values of t are maps, or can be.
func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Interface: // the constraint of a type parameter
		for i := range u.NumEmbeddeds() {
			if union, ok := u.EmbeddedType(i).(*types.Union); ok {
				for j := range union.Len() {
					if isMap(union.Term(j).Type()) {
						return true
					}
				}
			} else if isMap(u.EmbeddedType(i)) {
				return true
			}
		}
	}
	return false
}

// mapIterators are the functions of package maps that yield in the order of the map.
var mapIterators = []string{"All", "Keys", "Values"}

// checkMapIterators reports iterators over maps that are not sorted on the spot.
func checkMapIterators(h *Repository, f *File, report Report) {
	sorted := map[ast.Node]bool{}
	selectors(f, "slices", func(sel *ast.SelectorExpr) {
		if strings.HasPrefix(sel.Sel.Name, "Sorted") {
			sorted[sel] = true
		}
	})
	excused := map[ast.Node]bool{}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && sorted[call.Fun] && len(call.Args) > 0 {
			if inner, ok := call.Args[0].(*ast.CallExpr); ok {
				excused[inner.Fun] = true
			}
		}
		return true
	})
	selectors(f, "maps", func(sel *ast.SelectorExpr) {
		if slices.Contains(mapIterators, sel.Sel.Name) && !excused[sel] {
			report(f.Name, h.Line(sel.Pos()), "uses maps.%s without slices.Sorted around it", sel.Sel.Name)
		}
	})
}

// typer finds the types of expressions. It checks packages of the house from their
// parsed files and the standard library from its sources, signatures only. Of anything
// the types of other packages are unknown; errors that follow from this are ignored.
type typer struct {
	house *Repository
	done  map[string]*types.Package // by import path
	infos map[string]*types.Info    // by directory
}

// standardLibrary reads the standard library, each package once in the life of the
// program, which is most of the time that the rules take.
var standardLibrary = sync.OnceValue(func() types.Importer {
	if build.Default.GOROOT == "" { // these tests were built with -trimpath
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			panic(err)
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	return &lockedImporter{inner: importer.ForCompiler(token.NewFileSet(), "source", nil)}
})

// lockedImporter is an importer that several goroutines may use.
type lockedImporter struct {
	mu    sync.Mutex
	inner types.Importer
}

func (l *lockedImporter) Import(imp string) (*types.Package, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inner.Import(imp)
}

func newTyper(h *Repository) *typer {
	return &typer{house: h, done: map[string]*types.Package{}, infos: map[string]*types.Info{}}
}

// typesOf returns the types in the files of p outside tests.
func (t *typer) typesOf(p *Package) *types.Info {
	if t.infos[p.Dir] == nil {
		t.check(p, path.Join(t.house.Module, p.Dir))
	}
	return t.infos[p.Dir]
}

// check finds the types of p. Of files that stand in for each other by build tags it
// sees all; the duplicates are among the errors that it ignores.
func (t *typer) check(p *Package, imp string) *types.Package {
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}
	t.infos[p.Dir] = info
	var files []*ast.File
	for _, f := range p.Files {
		if !f.Test {
			files = append(files, f.AST)
		}
	}
	conf := types.Config{Importer: t, FakeImportC: true, Error: func(error) {}}
	pkg, _ := conf.Check(imp, t.house.Fset, files, info) // see above
	t.done[imp] = pkg
	return pkg
}

func (t *typer) Import(imp string) (*types.Package, error) {
	if pkg := t.done[imp]; pkg != nil {
		return pkg, nil
	}
	if dir, ours := strings.CutPrefix(imp, t.house.Module+"/"); ours {
		if p := t.house.Package(dir); p != nil {
			return t.check(p, imp), nil
		}
	}
	if isStandard(imp) {
		if pkg, err := standardLibrary().Import(imp); err == nil {
			t.done[imp] = pkg
			return pkg, nil
		}
	}
	pkg := types.NewPackage(imp, path.Base(imp))
	pkg.MarkComplete()
	t.done[imp] = pkg
	return pkg, nil
}
