package remat

import (
	"fmt"
	"math"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Heuristic is a rule for choosing a victim: the storage with the least score, the last one of
// equals in pool order. A score is a cost divided by the bytes of the storage, its staleness, both
// or neither, or has a formula of its own. Division by 0 gives infinity.
type Heuristic struct {
	Name string // as in Config.Heuristic
	Doc  string // the terms of the score

	near         func(*runner) neighbourhood // nil: victims are drawn at random
	by           divisor                     // divisors of the cost
	banishUnsafe bool                        // cannot be combined with liveness banish
}

// divisor is a set of divisors and rules of placement.
type divisor uint8

const (
	bySize   divisor = 1 << iota // bytes of the storage
	byAge                        // nanoseconds since its last use
	byCredit                     // with bySize: plus the adjacent free bytes
	byUse                        // with byCredit: capped at the bytes requested
	byPlace                      // no divisor: evict adjacent blocks together, see evictWindow
	byEnds                       // no divisor: place expensive storages at the high end, the others at the low end
)

// Heuristics returns all heuristics.
func Heuristics() []Heuristic {
	local := singleBy(func(s *store) int64 { return s.local })
	one := singleBy(func(*store) int64 { return 1 })
	used := singleBy(func(s *store) int64 { return s.access })
	return []Heuristic{
		{"estar", "cost of all evicted ancestors and descendants, size, staleness (h_DTR)", newRegions(down),
			bySize | byAge, true},
		{"estar/m", "cost of all evicted ancestors and descendants, size", newRegions(down), bySize, true},
		{"estar/s", "cost of all evicted ancestors and descendants, staleness", newRegions(down), byAge, true},
		{"estar-only", "cost of all evicted ancestors and descendants", newRegions(down), 0, true},
		{"estar-maxstale", "as estar, staleness since the last use of any of them", newReachable, bySize | byAge, false},
		{"eq", "cost of evicted classes around, size, staleness (h_DTR^eq)", newClasses(false), bySize | byAge, true},
		{"eq/m", "cost of evicted classes around, size", newClasses(false), bySize, true},
		{"eq/s", "cost of evicted classes around, staleness", newClasses(false), byAge, true},
		{"eq-only", "cost of adjacent evicted classes", newClasses(false), 0, true},
		{"eq-mended", "as eq, with exact sums", newClasses(true), bySize | byAge, true},
		{"dte", "as eq, size with adjacent free bytes (MegTaiChi)", newClasses(false),
			bySize | byAge | byCredit, true},
		{"dte-cap", "as dte, bytes capped at the request", newClasses(false),
			bySize | byAge | byCredit | byUse, true},
		{"mge", "MegEngine: bytes moved by adjacent components, size with adjacent free bytes, staleness",
			newMge(true), 0, true},
		{"mge-nofrag", "as mge, without adjacent free bytes", newMge(false), 0, true},
		{"mge-static", "MegEngine for graphs: cost of producers, missing descendants, memory, size, next use",
			newStatic, 0, false},
		{"oneflow", "OneFlow: cost of adjacent components, size, staleness", newOneFlow, 0, true},
		{"belady", "farthest next use in the program, then own cost", newBelady, 0, false},
		{"coop", "adjacent blocks that make room at the least total eq/s; else eq (Coop)",
			newClasses(false), bySize | byAge | byPlace, true},
		{"coop-ends", "as coop, expensive tensors at the high end if the strategy supports hints (Coop)",
			newClasses(false), bySize | byAge | byPlace | byEnds, true},
		{"local", "own cost, size, staleness (h_DTR^local)", local, bySize | byAge, false},
		{"local/m", "own cost, size", local, bySize, false},
		{"local/s", "own cost, staleness", local, byAge, false},
		{"local-only", "own cost", local, 0, false},
		{"msps", "cost of all evicted ancestors, size (memory saved per second, as in Capuchin)", newRegions(up),
			bySize, true},
		{"lru", "longest unused first", used, 0, false},
		{"size", "largest first", one, bySize, false},
		{"1/s", "staleness", one, byAge, false},
		{"1/(m*s)", "size, staleness", one, bySize | byAge, false},
		{"random", "uniformly random, from the seed", nil, 0, false},
	}
}

func heuristicOf(name string) (*Heuristic, error) {
	all := Heuristics()
	names := make([]string, len(all))
	for i := range all {
		if names[i] = all[i].Name; names[i] == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("heuristic %q: %swant %s", name, nearest.Hint(name, names), strings.Join(names, ", "))
}

func (r *runner) choose() int32 {
	all := r.pool.list()
	if r.near == nil {
		return all[r.random.Below(uint64(len(all)))]
	}
	for _, list := range [2][]int32{r.sample(all), all} {
		if list = r.largeEnough(list); len(list) > 0 {
			return r.leastScore(list)
		}
	}
	return r.leastScore(all)
}

// leastScore returns the storage with the least score in a non-empty list. Ties go to the last one,
// or to the first with QuirkVector.
func (r *runner) leastScore(list []int32) int32 {
	best, least, victim := math.Inf(1), math.Inf(1), none32
	for _, s := range list {
		score, tie, worse := r.score(s, best)
		if worse || score > best || score == best && tie > least {
			continue
		}
		if r.pool.swap && score == best && tie == least && victim != none32 {
			continue
		}
		best, least, victim = score, tie, s
		if score == 0 {
			break
		}
	}
	return victim
}

// slack exceeds the relative error of rounding a float quotient three times.
const slack = 1 + 1e-14

// score returns the score of a storage and its tie-breaker. Worse is true if a cheap estimate
// already exceeds best; then the score is not computed.
func (r *runner) score(s int32, best float64) (score, tie float64, worse bool) {
	if r.ranks != nil {
		score, tie = r.ranks.rank(s)
		return score, tie, false
	}
	cost, access := r.costs.cost(s)
	size, age := uint64(1), uint64(1)
	if r.h.by&bySize != 0 {
		size = uint64(r.bytes(s))
	}
	if r.h.by&byAge != 0 {
		age = uint64(r.clock - access)
	}
	if size == 0 || age == 0 {
		return math.Inf(1), 0, false
	}
	if cost > 0 && float64(cost)/(float64(size)*float64(age)) > best*slack {
		return 0, 0, true
	}
	return quotient(cost, size, age), 0, false
}

// bytes returns the bytes that evicting a storage yields, as the heuristic counts them.
func (r *runner) bytes(s int32) device.Size {
	size := r.s.Storages[s].Size
	if r.h.by&byCredit == 0 {
		return size
	}
	size += r.freeBeside(s)
	if r.h.by&byUse != 0 && r.want > 0 {
		size = min(size, r.want)
	}
	return size
}

// freeBeside returns the free bytes that would merge with a resident storage if it were evicted.
func (r *runner) freeBeside(s int32) device.Size {
	if r.adjacent == nil || r.s.Storages[s].Size == 0 {
		return 0
	}
	below, above := r.adjacent.FreeNeighbours(r.stores[s].block)
	return below + above
}
