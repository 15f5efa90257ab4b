package tidy

import (
	"go/ast"
	"slices"
)

// pointerRooms are the rooms that hand addresses to C, where they become pointers.
var pointerRooms = []string{"device/cuda", "strategies/plugin", "cmd/libvramyard"}

// Pointers checks that addresses of device memory stay numbers.
var Pointers = Rule{
	Name: "pointers",
	Doc:  "no unsafe and no uintptr outside device/cuda, strategies/plugin and cmd/libvramyard",
	Check: func(h *Repository, report Report) {
		h.each(true, func(p *Package, f *File) {
			if underAny(p.Dir, pointerRooms) {
				return
			}
			for _, spec := range f.AST.Imports {
				if importPath(spec) == "unsafe" {
					report(f.Name, h.Line(spec.Pos()), "imports unsafe")
				}
			}
			ast.Inspect(f.AST, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name == "uintptr" {
					report(f.Name, h.Line(id.Pos()), "uses uintptr")
				}
				return true
			})
		})
	},
}

// Inits checks that nothing happens before main but the making of values.
var Inits = Rule{
	Name: "init",
	Doc:  "no init functions outside tests: nothing registers itself",
	Check: func(h *Repository, report Report) {
		h.each(false, func(_ *Package, f *File) {
			for _, decl := range f.AST.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					report(f.Name, h.Line(fn.Pos()), "has an init function")
				}
			}
		})
	},
}

// timelessRooms are those whose answers must not depend on when they are asked.
var timelessRooms = []string{"strategies", "alloc", "device", "harness/trace"}

// timedRooms are the packages of real devices, which measure time.
var timedRooms = []string{"device/cuda", "device/nvml", "strategies/plugin"}

// clockFunctions are the functions of package time that read the clock or wait for it.
var clockFunctions = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
}

// Clocks checks that results do not depend on the time of day.
var Clocks = Rule{
	Name: "clock",
	Doc:  "strategies, alloc, device and harness/trace neither read the clock nor wait for it, but for what is real",
	Check: func(h *Repository, report Report) {
		h.each(false, func(p *Package, f *File) {
			if !underAny(p.Dir, timelessRooms) || underAny(p.Dir, timedRooms) {
				return
			}
			selectors(f, "time", func(sel *ast.SelectorExpr) {
				if slices.Contains(clockFunctions, sel.Sel.Name) {
					report(f.Name, h.Line(sel.Pos()), "uses time.%s", sel.Sel.Name)
				}
			})
		})
	},
}

// selectors calls visit for every use in f of a name of the imported package.
func selectors(f *File, imported string, visit func(*ast.SelectorExpr)) {
	name := importName(f, imported)
	if name == "" {
		return
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == name {
				visit(sel)
			}
		}
		return true
	})
}

// strategyBans lists imports that have no place in a strategy, with the reason.
var strategyBans = map[string]string{
	"os":           "a strategy does not depend on its surroundings",
	"sync":         "wrap.Locked has the one mutex",
	"sync/atomic":  "a strategy is single-threaded",
	"math/rand":    "a strategy is deterministic",
	"math/rand/v2": "a strategy is deterministic",
	"time":         "a strategy knows no time",
}

// StrategyImports checks that strategies are deterministic and single-threaded.
var StrategyImports = Rule{
	Name: "strategy imports",
	Doc:  "strategies import no os, sync, math/rand or time, and start no goroutines",
	Check: func(h *Repository, report Report) {
		h.each(false, func(p *Package, f *File) {
			if !Under(p.Dir, "strategies") || underAny(p.Dir, pointerRooms) {
				return
			}
			for _, spec := range f.AST.Imports {
				if why := strategyBans[importPath(spec)]; why != "" {
					report(f.Name, h.Line(spec.Pos()), "imports %s: %s", importPath(spec), why)
				}
			}
			ast.Inspect(f.AST, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					report(f.Name, h.Line(g.Pos()), "starts a goroutine: a strategy is single-threaded")
				}
				return true
			})
		})
	},
}
