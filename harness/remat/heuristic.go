package remat

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/internal/nearest"
)

// Heuristic is a rule for choosing a victim: the storage with the least score, among equals the
// last one in the order of the pool. A score is a cost divided by the bytes of the storage, its
// staleness, both or neither, or has a formula of its own. Division by 0 gives infinity.
type Heuristic struct {
	Name    string // as in Config.Heuristic
	Prefers string // the storages it evicts first
	Source  string // publication, and the place in the original's code

	dividend  string               // dividend of the score in Symbols, or the whole score
	newScorer func(*runner) scorer // nil: victims are drawn at random
	traits    traits               // divisors of the score, and rules of placement
}

// traits is a set of divisors of a score, rules of placement, and requirements.
type traits uint8

const (
	perByte    traits = 1 << iota // divided by the bytes of the storage
	perAge                        // divided by the nanoseconds since its last use
	addFree                       // with perByte: adjacent free bytes count as bytes of the storage
	capCredit                     // with addFree: but the sum at most as the bytes requested
	inWindows                     // adjacent blocks of any size are evicted together, see evictWindow
	needsTimes                    // the log must have times
	atEnds                        // expensive storages are placed at the high end, the others at the low end
)

// Formula returns the score in the symbols of [Symbols].
func (h *Heuristic) Formula() string {
	over, under := h.dividend, []string{}
	switch {
	case h.traits&inWindows != 0:
	case h.traits&capCredit != 0:
		under = append(under, "min(m + f, r)")
	case h.traits&addFree != 0:
		under = append(under, "(m + f)")
	case h.traits&perByte != 0:
		under = append(under, "m")
	}
	if h.traits&perAge != 0 {
		under = append(under, "s")
	}
	switch {
	case len(under) > 0 && strings.Contains(over, " "):
		over = "(" + over + ") / "
	case len(under) > 0:
		over += " / "
	}
	score := over + strings.Join(under, "·")
	if len(under) > 1 {
		score = over + "(" + strings.Join(under, "·") + ")"
	}
	if h.traits&inWindows != 0 {
		return "sum of " + score + " over a window"
	}
	return score
}

// Symbol is a term of a [Heuristic.Formula].
type Symbol struct {
	Name    string // one letter
	Meaning string // with its unit
}

// Symbols returns the terms of the formulas. Each belongs to one resident storage.
func Symbols() []Symbol {
	return []Symbol{
		{"m", "bytes of the storage"},
		{"c", "own cost: nanoseconds of the operators that produce the storage and its views"},
		{"t", "time of the last use: the clock, in nanoseconds, when an operator last read or first wrote the storage"},
		{"s", "staleness: the clock now, minus t"},
		{"U", "sum of c over its evicted ancestors: the inputs of its operators, their inputs and so on, as long as " +
			"they are evicted"},
		{"D", "sum of c over its evicted descendants, likewise"},
		{"V", "sum of c over evicted ancestors and descendants, each once even if it is both"},
		{"E", "sum of the classes of its evicted inputs and consumers, each class once; a class is a set of storages " +
			"that were adjacent when evicted, and its sum is the sum of their c"},
		{"f", "free bytes that would merge with the storage's block if it were evicted"},
		{"r", "bytes of the request that needs memory"},
		{"n", "steps of the program until the storage is next read; infinite if it is not"},
		{"b", "MegEngine's cost: bytes read and written by the operators that produce the storage"},
		{"a", "MegEngine's staleness: bytes read and written by all operators since the last use, divided by 10^8"},
		{"k", "number of times the storage was recomputed"},
		{"N", "sum of the evicted components around the storage. mge sums b and counts a component once. oneflow sums c, " +
			"takes the inputs and outputs of the producing operators only, and adds the component of each, at least its own " +
			"cost"},
		{"R", "b of the storage and of its missing inputs, recursively, divided by 10^8"},
		{"F", "1 plus the number of its missing descendants, those not yet computed included; a descendant counts once " +
			"for each path to it"},
		{"M", "bytes of the storage and of its missing inputs, recursively"},
	}
}

// Heuristics returns all heuristics.
func Heuristics() []Heuristic {
	return append(append(publishedByDTR(), ablations()...), byOthers()...)
}

// simrd names the source of a heuristic in simrd, the simulator published with DTR.
func simrd(file, class string) string {
	return "Dynamic Tensor Rematerialization, ICLR 2021; its simulator, heuristic/" + file + ": " + class
}

// Sources that several heuristics share.
const (
	megEngine = "MegEngine since 1.6, interpreter/tensor_info.h: eval_func; interpreter_impl.cpp: estimate_neighbor_cost"
	coopPaper = "Coop, NeurIPS 2023; OneFlow, core/vm/remat/allocator.cpp: EvictAndFindPieceOnce"
)

// publishedByDTR returns the heuristics that the paper on DTR compares.
func publishedByDTR() []Heuristic {
	local := singleBy(func(s *store) int64 { return s.local })
	one := singleBy(func(*store) int64 { return 1 })
	used := singleBy(func(s *store) int64 { return s.access })
	return []Heuristic{
		{"estar", "cheap to recompute with its evicted ancestors and descendants, large, long unused",
			simrd("dtr.py", "DTR, h_DTR"), "c + U + D", newNeighborhoods(down), perByte | perAge},
		{"eq", "as estar, with a cheaper estimate of the evicted ancestors and descendants",
			simrd("dtr.py", "DTREqClass, h_DTR^eq"), "c + E", newClasses(false), perByte | perAge},
		{"local", "cheap to recompute if its inputs are resident, large, long unused",
			simrd("dtr.py", "DTRLocal, h_DTR^local"), "c", local, perByte | perAge},
		{"msps", "cheap to recompute with its evicted ancestors, large",
			"Capuchin (memory saved per second), ASPLOS 2020; DTR's simulator, heuristic/etc.py: MSPS",
			"c + U", newNeighborhoods(up), perByte},
		{"lru", "longest unused", simrd("etc.py", "LRU"), "t", used, 0},
		{"size", "largest", simrd("etc.py", "LargestStorage"), "1", one, perByte},
		{"random", "uniformly random, from the seed", simrd("etc.py", "RandomStorage"), "random", nil, 0},
	}
}

// ablations returns the scores in which the paper on DTR leaves terms out.
func ablations() []Heuristic {
	local := singleBy(func(s *store) int64 { return s.local })
	one := singleBy(func(*store) int64 { return 1 })
	of := func(class string) string { return simrd("ablation.py", class) }
	return []Heuristic{
		{"estar/m", "as estar, without staleness", of("AbESize"), "c + U + D", newNeighborhoods(down), perByte},
		{"estar/s", "as estar, without size", of("AbEStale"), "c + U + D", newNeighborhoods(down), perAge},
		{"estar-only", "as estar, by cost alone", of("AbE"), "c + U + D", newNeighborhoods(down), 0},
		{"estar-maxstale", "as estar; s counts from the last use of the storage or of any in V", simrd("dtr.py", "DTRUnopt"),
			"c + V", newReachable, perByte | perAge},
		{"eq/m", "as eq, without staleness", of("AbEqSize"), "c + E", newClasses(false), perByte},
		{"eq/s", "as eq, without size", of("AbEqStale"), "c + E", newClasses(false), perAge},
		{"eq-only", "as eq, by cost alone", of("AbEq"), "c + E", newClasses(false), 0},
		{"local/m", "as local, without staleness", of("AbLocalSize"), "c", local, perByte},
		{"local/s", "as local, without size", of("AbLocalStale"), "c", local, perAge},
		{"local-only", "as local, by cost alone", of("AbLocal"), "c", local, 0},
		{"1/s", "longest unused", of("AbStale"), "1", one, perAge},
		{"1/(m*s)", "large and long unused", of("AbSizeStale"), "1", one, perByte | perAge},
	}
}

// byOthers returns the heuristics of later systems, of other fields, and ours.
func byOthers() []Heuristic {
	nofrag := mgeDefault()
	nofrag.free = 0
	return []Heuristic{
		{"eq-mended", "as eq; the sums of the classes are exact", "ours", "c + E", newClasses(true), perByte | perAge},
		{"dte", "as eq, with credit for adjacent free memory",
			"MegTaiChi, ICS 2022; OneFlow, core/vm/remat/allocator.cpp; with the classes of eq",
			"c + E", newClasses(false), perByte | perAge | addFree},
		{"dte-cap", "as dte, without credit for memory that the request cannot use", "ours", "c + E",
			newClasses(false), perByte | perAge | addFree | capCredit},
		{"coop", "the cheapest window of adjacent blocks that holds the request; without one, as eq", coopPaper, "c + E",
			newClasses(false), perByte | perAge | inWindows},
		{"coop-ends", "as coop; tensors that are expensive for their size are placed at the high end", coopPaper, "c + E",
			newClasses(false), perByte | perAge | inWindows | atEnds},
		{"mge", "recomputed with few bytes moved, large, long unused, beside free memory", megEngine,
			"(b + N + 0.001)·1.0001^k / (((m + f) / 2^20)·(a + 0.001))", newMge(mgeDefault()), 0},
		{"mge-nofrag", "as mge, without credit for adjacent free memory", megEngine,
			"(b + N + 0.001)·1.0001^k / ((m / 2^20)·(a + 0.001))", newMge(nofrag), 0},
		{"mge-static", "few missing inputs and descendants, large, not read soon",
			"MegEngine since 1.6, core/impl/graph/seq_dtr.cpp: find_best", "R·F·M / m / n", newStatic, 0},
		{"oneflow", "as eq, with MegEngine's neighbors",
			"OneFlow, core/eager/tensor_storage.cpp: RematableTensorStorage::cost", "(c + N) / (m·s)",
			newOneFlow, 0},
		{"belady", "read last; among equals, the cheapest to recompute",
			"A study of replacement algorithms for a virtual-storage computer, IBM Systems Journal 5, 1966", "-n",
			newBelady, 0},
	}
}

// heuristicOf returns the heuristic that text names, with the settings after its first colon.
func heuristicOf(text string) (*Heuristic, swapConfig, error) {
	name, settings, given := strings.Cut(text, ":")
	all := Heuristics()
	var names []string
	for i := range all {
		if names = append(names, all[i].Name); all[i].Name != name {
			continue
		}
		if given {
			swap, err := all[i].applySettings(settings)
			return &all[i], swap, err
		}
		return &all[i], swapDefault(), nil
	}
	for _, p := range Plans() {
		names = append(names, p.Name)
	}
	return nil, swapConfig{}, fmt.Errorf("heuristic %q: %swant %s", name, nearest.Hint(name, names),
		strings.Join(names, ", "))
}
