package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/strategies"
)

// answer says in three sentences who is fastest on W1 and where our strategies lose, from the race
// with the peers.
func (f *figures) answer() string {
	var winners, ahead, behind []string
	sizes, nanoseconds := map[string][]string{}, map[string][]string{} // by winner
	var times, space, found []float64
	for _, runs := range f.peers.raced() {
		live, name := exponent(runs[0].Live), runs[0].name()
		if sizes[name] == nil {
			winners = append(winners, name)
		}
		sizes[name] = append(sizes[name], live)
		nanoseconds[name] = append(nanoseconds[name], nanos(runs[0].Min))
		peer, our := fastest(runs, foreign), fastest(runs, ours)
		times, space = append(times, our.Min/peer.Min), append(space, our.Address/peer.Address)
		found = append(found, fastest(runs, oursByAddress).Min/peer.Min)
		if our.Min > peer.Min {
			behind = append(behind, live)
		} else {
			ahead = append(ahead, live)
		}
	}
	for i, w := range winners {
		winners[i] = fmt.Sprintf("`%s` with %s live blocks (%s ns)", w, inWords(sizes[w]), inWords(nanoseconds[w]))
	}
	verb := "lose at " + inWords(behind)
	switch {
	case len(behind) == 0:
		verb = "win at every size"
	case len(ahead) > 0:
		verb += " and win at " + inWords(ahead)
	}
	return fmt.Sprintf("For a pair of W1 the fastest allocator is %s; a `*` frees by a handle. Compared with the fastest "+
		"foreign allocator of each size we %s: the fastest of our strategies takes %s times as long, in %s times its address "+
		"space. Where a block is freed by its address, our fastest takes %s times as long as that "+
		"allocator.\n", inWords(winners), verb, between(times), between(space), between(found))
}

// raced returns the runs of the race on W1 for each number of live blocks, the fastest first.
func (f *peersFile) raced() (all [][]peerRun) {
	for _, n := range live {
		var runs []peerRun
		for _, r := range f.Runs {
			if r.Workload == "w1" && r.Live == n {
				runs = append(runs, r)
			}
		}
		slices.SortStableFunc(runs, func(a, b peerRun) int { return cmp.Compare(a.Min, b.Min) })
		if len(runs) > 0 {
			all = append(all, runs)
		}
	}
	return all
}

// fastest returns the first run that is meant, or nil.
func fastest(runs []peerRun, meant func(*peerRun) bool) *peerRun {
	for i := range runs {
		if meant(&runs[i]) {
			return &runs[i]
		}
	}
	return nil
}

// ours reports whether an allocator of the race is a strategy of this repository.
func ours(r *peerRun) bool {
	_, err := strategies.All().Lookup(r.Allocator, nil)
	return err == nil
}

func foreign(r *peerRun) bool { return !ours(r) }

func oursByAddress(r *peerRun) bool { return ours(r) && r.ByAddress }

// between returns the least and the largest number.
func between(x []float64) string {
	low, high := fixed(slices.Min(x), 2), fixed(slices.Max(x), 2)
	if low == high {
		return low
	}
	return low + " to " + high
}

// inWords returns the words with commas, and "and" before the last.
func inWords(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
