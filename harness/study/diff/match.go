package diff

import "slices"

// Match says in what the names of two runs agree.
type Match string

// The matches, the best first.
const (
	MatchAll      Match = "same"           // trace, strategy and configuration
	MatchRenamed  Match = "trace renamed"  // the trace has another name
	MatchRecorded Match = "trace changed"  // the trace has another hash
	MatchConfig   Match = "config changed" // another configuration on the same trace
	MatchOnly     Match = "different runs" // both results have one run, of whatever
)

// rules say what has to agree, in the order in which they are tried.
var rules = []struct {
	match Match
	key   func(Name) Name
	once  bool // holds only where one run of each result is left: of several settings none stands for another
}{
	{MatchAll, func(n Name) Name { return n }, false},
	{MatchRenamed, func(n Name) Name { n.Trace = ""; return n }, false},
	{MatchRecorded, func(n Name) Name { n.Hash = ""; return n }, false},
	{MatchConfig, func(n Name) Name { n.Config = nil; return n }, true},
	{MatchConfig, func(n Name) Name { n.Config, n.Hash = nil, ""; return n }, true},
}

// key is a name that can be compared.
type key struct{ trace, hash, strategy, config string }

// matched is a pair of runs by their places.
type matched struct {
	a, b  int
	match Match
}

// match finds the runs of b that runs of a stand for, in the order of a. Of several that agree
// alike the first of a stands for the first of b, and so on.
func match(a, b []Run) (pairs []matched, onlyA, onlyB []int) {
	partner, taken := slices.Repeat([]int{-1}, len(a)), make([]bool, len(b))
	how := make([]Match, len(a))
	for _, rule := range rules {
		left := map[key][]int{}
		for j := range b {
			if !taken[j] {
				k := keyOf(rule.key(b[j].Name))
				left[k] = append(left[k], j)
			}
		}
		alike := map[key]int{} // how many of a agree
		for i := range a {
			if partner[i] < 0 {
				alike[keyOf(rule.key(a[i].Name))]++
			}
		}
		for i := range a {
			k := keyOf(rule.key(a[i].Name))
			if partner[i] >= 0 || len(left[k]) == 0 || rule.once && (alike[k] != 1 || len(left[k]) != 1) {
				continue
			}
			partner[i], how[i] = left[k][0], rule.match
			taken[left[k][0]] = true
			left[k] = left[k][1:]
		}
	}
	if len(a) == 1 && len(b) == 1 && partner[0] < 0 {
		partner[0], how[0], taken[0] = 0, MatchOnly, true
	}
	for i, j := range partner {
		if j < 0 {
			onlyA = append(onlyA, i)
		} else {
			pairs = append(pairs, matched{i, j, how[i]})
		}
	}
	for j := range b {
		if !taken[j] {
			onlyB = append(onlyB, j)
		}
	}
	return pairs, onlyA, onlyB
}

func keyOf(n Name) key { return key{n.Trace, n.Hash, n.Strategy, string(n.Config)} }
