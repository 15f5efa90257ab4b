package remat

import (
	"fmt"
	"math"
	"strings"
)

// Heuristic is a rule that says which storage is evicted: the one with the least score, the last of
// these in the order of the pool. A score is a cost divided by the bytes of the storage, by
// the time since it was used, by both or by neither; division by 0 makes it infinite.
type Heuristic struct {
	Name string // what Config calls it
	Doc  string // what it goes by, for people

	near      func(*runner) neighbourhood // nil: a victim is drawn
	size, age bool                        // what the cost is divided by
	linked    bool                        // near keeps what banishing would have to take out
}

// Heuristics returns all heuristics.
func Heuristics() []Heuristic {
	local := around(func(s *store) int64 { return s.local })
	one := around(func(*store) int64 { return 1 })
	used := around(func(s *store) int64 { return s.access })
	return []Heuristic{
		{"estar", "cost of all evicted ancestors and descendants, size, staleness (h_DTR)", newRegions, true, true, true},
		{"estar/m", "cost of all evicted ancestors and descendants, size", newRegions, true, false, true},
		{"estar/s", "cost of all evicted ancestors and descendants, staleness", newRegions, false, true, true},
		{"estar-only", "cost of all evicted ancestors and descendants", newRegions, false, false, true},
		{"estar-maxstale", "as estar, stale since the last use of any of them", newWhole, true, true, false},
		{"eq", "cost of evicted classes around, size, staleness (h_DTR^eq)", newClasses, true, true, true},
		{"eq/m", "cost of evicted classes around, size", newClasses, true, false, true},
		{"eq/s", "cost of evicted classes around, staleness", newClasses, false, true, true},
		{"eq-only", "cost of evicted classes around", newClasses, false, false, true},
		{"local", "own cost, size, staleness (h_DTR^local)", local, true, true, false},
		{"local/m", "own cost, size", local, true, false, false},
		{"local/s", "own cost, staleness", local, false, true, false},
		{"local-only", "own cost", local, false, false, false},
		{"msps", "cost of all evicted ancestors, size (memory saved per second, as in Capuchin)", newAncestors, true, false, true},
		{"lru", "longest unused first", used, false, false, false},
		{"size", "largest first", one, true, false, false},
		{"1/s", "staleness", one, false, true, false},
		{"1/(m*s)", "size, staleness", one, true, true, false},
		{"random", "any, drawn with the seed", nil, false, false, false},
	}
}

// heuristicOf returns a heuristic by name.
func heuristicOf(name string) (*Heuristic, error) {
	all := Heuristics()
	names := make([]string, len(all))
	for i := range all {
		if names[i] = all[i].Name; names[i] == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("heuristic %q: want %s", name, strings.Join(names, ", "))
}

// choose returns the victim, of a pool that is not empty.
func (r *runner) choose() int32 {
	if r.h.near == nil {
		s := r.pool.first()
		for range r.random.Below(uint64(r.pool.n)) {
			s = r.pool.next[s]
		}
		return s
	}
	best, victim := math.Inf(1), r.pool.end()
	for s := r.pool.first(); s != r.pool.end(); s = r.pool.next[s] {
		score, worse := r.score(s, best)
		if !worse && score <= best {
			best, victim = score, s
		}
		if !worse && score == 0 {
			break
		}
	}
	return victim
}

// slack is more than what rounding a quotient of floats three times can be off by, relatively.
const slack = 1 + 1e-14

// score returns the score of a storage, or true if it is surely more than best.
func (r *runner) score(s int32, best float64) (float64, bool) {
	cost, access := r.near.cost(s)
	size, age := uint64(1), uint64(1)
	if r.h.size {
		size = uint64(r.s.Storages[s].Size)
	}
	if r.h.age {
		age = uint64(r.clock - access)
	}
	if size == 0 || age == 0 {
		return math.Inf(1), false
	}
	if cost > 0 && float64(cost)/(float64(size)*float64(age)) > best*slack {
		return 0, true
	}
	return quotient(cost, size, age), false
}
