package tidy

import (
	"fmt"
	"slices"
	"strings"
)

// room is one row of the floors table.
type room struct {
	// dir is a directory and the directories below it, or only the latter if it ends in a slash.
	dir string
	// floor orders the rooms: imports lead to lower floors or stay on theirs.
	floor int
	// only, if not nil, lists all that the room may import of ours. A trailing "/..." means
	// the directories below.
	only []string
	// never lists what it may not import although it lies on a lower floor.
	never []string
	// bare means that the room builds on the standard library alone.
	bare bool
}

// strategyImports is all that a strategy sees of the house.
var strategyImports = []string{"alloc", "alloc/...", "device", "kit/...", "internal/..."}

// pluginImports are the allowed imports of plug-ins, whose device calls stand-ins forward.
var pluginImports = append([]string{"device/standin"}, strategyImports...)

// catalogueImports are the allowed imports of the catalogue of strategies.
var catalogueImports = append([]string{"strategies/..."}, strategyImports...)

// simImports are the allowed imports of the simulated device.
var simImports = []string{"device", "device/internal/...", "kit/index", "kit/streampool", "internal/nearest",
	"internal/strictjson"}

// standinImports are the allowed imports of the stand-ins, whose tests serve a simulated device.
var standinImports = []string{"device", "device/sim", "device/standin", "kit/index", "kit/streampool"}

// cudaImports are the allowed imports of a real device, beside the library that loads its driver.
var cudaImports = []string{"device", "device/internal/...", "kit/index"}

// rooms is the floors table: eight floors. The most precise row holds for a package.
var rooms = []room{
	{dir: ".", floor: 0, only: []string{}, bare: true},
	{dir: "device", floor: 0, only: []string{}, bare: true},
	{dir: "device/cuda", floor: 0, only: cudaImports}, // purego loads the driver
	{dir: "device/cuda/cudatest", floor: 0, only: []string{}},
	{dir: "device/devicetest", floor: 0, only: []string{"device"}, bare: true},
	{dir: "device/internal/handle", floor: 0, only: []string{}, bare: true},
	{dir: "device/internal/mapped", floor: 0, only: []string{"device", "kit/index"}, bare: true},
	{dir: "device/mirror", floor: 0, only: []string{"device", "kit/index"}, bare: true},
	{dir: "device/nvml", floor: 0, only: []string{"device"}}, // go-nvml reads the inventory
	{dir: "device/standin", floor: 0, only: standinImports, bare: true},
	{dir: "device/sim", floor: 0, only: simImports, bare: true},
	{dir: "python", floor: 0, only: []string{}, bare: true},
	{dir: "kit/index", floor: 0, only: []string{"device"}, bare: true},
	{dir: "kit/streampool", floor: 0, only: []string{"device", "kit/index"}, bare: true},
	{dir: "internal/nearest", floor: 0, only: []string{}, bare: true},
	{dir: "internal/strictjson", floor: 0, only: []string{"internal/nearest"}, bare: true},
	{dir: "alloc", floor: 1, never: []string{"kit/front", "kit/regions", "kit/tiles"}, bare: true},
	{dir: "kit", floor: 1, bare: true},
	{dir: "internal", floor: 1, bare: true},
	{dir: "internal/invariants", floor: 1, only: []string{}, bare: true},
	{dir: "internal/fileio", floor: 1},     // compresses
	{dir: "internal/script", floor: 1},     // datadriven runs its files
	{dir: "internal/strictyaml", floor: 1}, // go.yaml.in parses
	{dir: "strategies", floor: 2, only: catalogueImports, never: notForStrategies, bare: true},
	{dir: "strategies/", floor: 2, only: strategyImports, never: notForStrategies, bare: true},
	{dir: "strategies/plugin", floor: 2, only: pluginImports, never: notForStrategies}, // shares memory with a process
	{dir: "harness/provenance", floor: 3, only: []string{}, bare: true},
	{dir: "harness/trace", floor: 3, never: outsideHarness},
	{dir: "harness/trace/flat", floor: 3, only: []string{}},
	{dir: "harness/trace/torch/pickle", floor: 3, only: []string{}, bare: true},
	{dir: "harness/cell", floor: 4, never: outsideHarness},
	{dir: "harness/replay", floor: 4, never: outsideHarness},
	{dir: "harness/study", floor: 5, never: outsideHarness},
	{dir: "harness/launch", floor: 5, only: []string{"device", "device/sim", "device/standin", "python"}},
	{dir: "harness/remat", floor: 5, never: outsideHarness},
	{dir: "harness/show", floor: 6, never: outsideHarness},
	{dir: "props", floor: 6, never: []string{"strategies", "harness/show"}},
	{dir: "cli", floor: 7},
	{dir: "cmd", floor: 7},
	{dir: "examples", floor: 7},
	{dir: "benchmarks/gpu", floor: 7},
}

// notForStrategies lists the internal packages that strategies must not import.
var notForStrategies = []string{"internal/budget", "internal/fileio", "internal/script", "internal/strictyaml"}

// outsideHarness lists the packages that the harness must not import: it receives a catalogue.
var outsideHarness = []string{"strategies", "props"}

// sideways lists the imports between strategies.
var sideways = map[string][]string{
	"strategies/buddy":         {"strategies/internal/blocks"},
	"strategies/compiler":      {"strategies/internal/planned"},
	"strategies/pgmo":          {"strategies/internal/planned"},
	"strategies/slab":          {"strategies/internal/cells"},
	"strategies/slabbuddy":     {"strategies/internal/blocks", "strategies/internal/cells"},
	"strategies/recall":        {"strategies/bestfit"},
	"strategies/stalloc":       {"strategies/internal/planned"},
	"strategies/slabbuddy/xdl": {"strategies/slabbuddy", "strategies/slab/xdl", "strategies/buddy/xdl"},
}

// testRooms are the rooms of suites that others run as tests of theirs.
var testRooms = []string{"harness/cell/celltest", "device/cuda/cudatest", "device/devicetest", "internal/script",
	"props/propstest"}

// thirdParty lists what bare rooms may import although it is not of the standard library.
var thirdParty = []string{"golang.org/x/exp/constraints"}

// roomOf returns the row that holds for a directory.
func roomOf(dir string) (room, bool) {
	best, found := room{}, false
	for _, r := range rooms {
		if r.holds(dir) && (!found || len(r.dir) > len(best.dir)) {
			best, found = r, true
		}
	}
	return best, found
}

// holds reports whether the row speaks of a directory.
func (r room) holds(dir string) bool {
	return dir == r.dir || r.dir != "." && strings.HasPrefix(dir, strings.TrimSuffix(r.dir, "/")+"/")
}

// Floors checks who imports whom.
var Floors = Rule{
	Name: "floors",
	Doc: "imports lead down the floors table or stay on their floor; allocators, alloc and device build on the " +
		"standard library",
	Check: func(h *Repository, report Report) {
		h.each(true, func(p *Package, f *File) {
			r, ok := roomOf(p.Dir)
			if !ok {
				report(f.Name, 1, "%s lies in no room of the floors table", p.Dir)
				return
			}
			for _, spec := range f.AST.Imports {
				if why := objection(h, r, f, importPath(spec)); why != "" {
					report(f.Name, h.Line(spec.Pos()), "%s", why)
				}
			}
		})
	},
}

// objection returns what is wrong with an import of f, "" if nothing is.
func objection(h *Repository, r room, f *File, imp string) string {
	to, ours := strings.CutPrefix(imp, h.Module+"/")
	switch {
	case imp == h.Module:
		return "the root package holds no code to import"
	case ours && f.external():
		if Under(to, "cmd") && !Under(f.Dir(), "cmd") {
			return "nothing below cmd imports cmd, tests neither"
		}
		return ""
	case ours:
		return houseObjection(r, f.Dir(), to)
	case f.Test:
		return ""
	case isStandard(imp):
		if Under(imp, "testing") && !slices.Contains(testRooms, f.Dir()) {
			return "imports testing outside tests; only " + strings.Join(testRooms, " and ") + " do"
		}
		return ""
	case r.bare && !slices.Contains(thirdParty, imp):
		return fmt.Sprintf("imports %s: %s builds on the standard library alone", imp, r.dir)
	}
	return ""
}

// houseObjection returns what is wrong with an import between two directories of ours.
func houseObjection(from room, dir, to string) string {
	target, ok := roomOf(to)
	switch {
	case !ok:
		return fmt.Sprintf("imports %s, which lies in no room of the floors table", to)
	case slices.Contains(sideways[dir], to):
		return ""
	case from.only != nil && !allows(from.only, to):
		return fmt.Sprintf("imports %s: %s may import of ours %s", to, dir, orNothing(from.only))
	case underAny(to, from.never):
		return fmt.Sprintf("imports %s: %s knows nothing of it", to, from.dir)
	case target.floor > from.floor:
		return fmt.Sprintf("imports %s, which lies on a floor above %s", to, dir)
	}
	return ""
}

func allows(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, deep := strings.CutSuffix(p, "/...")
		return p == dir || deep && Under(dir, below) && dir != below
	})
}

// orNothing joins names for a message.
func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return "only " + strings.Join(names, ", ")
}

// isStandard reports whether an import path is of the standard library: its first
// element has no dot.
func isStandard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}
