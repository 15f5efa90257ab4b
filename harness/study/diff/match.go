package diff

import "slices"

// Match is the quality of a pair of runs.
type Match string

// The matches, best first.
const (
	MatchAll      Match = "same"           // trace, strategy and configuration
	MatchRenamed  Match = "trace renamed"  // the name of the trace differs
	MatchRecorded Match = "trace changed"  // the hash of the trace differs
	MatchConfig   Match = "config changed" // the configuration differs
	MatchOnly     Match = "different runs" // each result has one run only
)

// rules are the properties that must agree, in the order tried.
var rules = []struct {
	match Match
	key   func(Name) Name
	once  bool // applies only if one run is left on each side
}{
	{MatchAll, func(n Name) Name { return n }, false},
	{MatchRenamed, func(n Name) Name { n.Trace = ""; return n }, false},
	{MatchRecorded, func(n Name) Name { n.Hash = ""; return n }, false},
	{MatchConfig, func(n Name) Name { n.Config = nil; return n }, true},
	{MatchConfig, func(n Name) Name { n.Config, n.Hash = nil, ""; return n }, true},
}

// key is a comparable [Name].
type key struct{ trace, hash, strategy, config string }

// matched is a pair of indices.
type matched struct {
	a, b  int
	match Match
}

// match pairs the runs of a and b, in the order of a. Runs that agree equally well are paired in
// order.
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
		alike := map[key]int{} // number of runs of a by key
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
