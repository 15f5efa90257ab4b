package remat

import (
	"fmt"
	"math"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Heuristic is a rule that says which storage is evicted: the one with the least score, the last of
// these in the order of the pool. A score is a cost divided by the bytes of the storage, by
// the time since it was used, by both or by neither, or has a formula of its own; division by 0
// makes it infinite.
type Heuristic struct {
	Name string // what Config calls it
	Doc  string // what it goes by, for people

	near   func(*runner) neighbourhood // nil: a victim is drawn
	by     divisor                     // what the cost is divided by
	linked bool                        // near keeps what banishing would have to take out
}

// divisor is a set of what a cost is divided by.
type divisor uint8

const (
	bySize   divisor = 1 << iota // bytes of the storage
	byAge                        // nanoseconds since its last use
	byCredit                     // with bySize: and the free bytes beside it
	byUse                        // with byCredit: but no more than the request can use
	byPlace                      // nothing, but who lies side by side goes together, see evictWindow
	byEnds                       // nothing, but what is dear lies at one end and what is cheap at the other
)

// Heuristics returns all heuristics.
func Heuristics() []Heuristic {
	local := around(func(s *store) int64 { return s.local })
	one := around(func(*store) int64 { return 1 })
	used := around(func(s *store) int64 { return s.access })
	return []Heuristic{
		{"estar", "cost of all evicted ancestors and descendants, size, staleness (h_DTR)", newRegions(down),
			bySize | byAge, true},
		{"estar/m", "cost of all evicted ancestors and descendants, size", newRegions(down), bySize, true},
		{"estar/s", "cost of all evicted ancestors and descendants, staleness", newRegions(down), byAge, true},
		{"estar-only", "cost of all evicted ancestors and descendants", newRegions(down), 0, true},
		{"estar-maxstale", "as estar, stale since the last use of any of them", newWhole, bySize | byAge, false},
		{"eq", "cost of evicted classes around, size, staleness (h_DTR^eq)", newClasses(false), bySize | byAge, true},
		{"eq/m", "cost of evicted classes around, size", newClasses(false), bySize, true},
		{"eq/s", "cost of evicted classes around, staleness", newClasses(false), byAge, true},
		{"eq-only", "cost of evicted classes around", newClasses(false), 0, true},
		{"eq-mended", "as eq, with sums that are exact", newClasses(true), bySize | byAge, true},
		{"dte", "as eq, with the free bytes beside it for size (MegTaiChi)", newClasses(false),
			bySize | byAge | byCredit, true},
		{"dte-cap", "as dte, with no more bytes than the request can use", newClasses(false),
			bySize | byAge | byCredit | byUse, true},
		{"mge", "MegEngine's: bytes moved by components around, size with free neighbours, staleness", newMge(true), 0, true},
		{"mge-nofrag", "as mge, without free neighbours", newMge(false), 0, true},
		{"mge-static", "MegEngine's for graphs: regeneration before and behind, its memory, size, next use",
			newStatic, 0, false},
		{"oneflow", "OneFlow's: cost of components around, size, staleness", newOneFlow, 0, true},
		{"belady", "farthest next use of the program, then own cost", newBelady, 0, false},
		{"coop", "the neighbours in address space of least eq/s that make room together, eq where there are none (Coop)",
			newClasses(false), bySize | byAge | byPlace, true},
		{"coop-ends", "as coop, and what is dear for its bytes is placed at the other end, if the strategy has ends (Coop)",
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
		{"random", "any, drawn with the seed", nil, 0, false},
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
		if list = r.worth(list); len(list) > 0 {
			return r.least(list)
		}
	}
	return r.least(all)
}

// least returns the storage of a list that is not empty with the least score: of equals the last,
// or the first where candidates are a vector.
func (r *runner) least(list []int32) int32 {
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

// slack is more than what rounding a quotient of floats three times can be off by, relatively.
const slack = 1 + 1e-14

// score returns the score of a storage and what decides between equal scores, or true if it is
// surely more than best.
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

// bytes returns what the eviction of a storage would be worth in bytes, by the heuristic.
func (r *runner) bytes(s int32) device.Size {
	size := r.s.Storages[s].Size
	if r.h.by&byCredit == 0 {
		return size
	}
	size += r.beside(s)
	if r.h.by&byUse != 0 && r.want > 0 {
		size = min(size, r.want)
	}
	return size
}

// beside returns the free bytes that would merge with a resident storage if it were evicted.
func (r *runner) beside(s int32) device.Size {
	if r.around == nil || r.s.Storages[s].Size == 0 {
		return 0
	}
	below, above := r.around.FreeNeighbours(r.stores[s].block)
	return below + above
}
