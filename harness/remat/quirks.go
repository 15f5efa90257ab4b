package remat

import (
	"fmt"
	"strings"
)

// Quirks is a set of defects (q1 to q9) and peculiarities of MegEngine to reproduce. Defects
// outside the set are mended. Two more are kinds of [Trigger]: reserve evicts although the device
// has free memory, and threshold does not bound the memory in use.
type Quirks uint16

// The quirks. Those of components and scores affect the heuristics mge and mge-nofrag only.
const (
	// QuirkProducer takes the neighbours of a storage from its producers' inputs and outputs only,
	// not from its consumers (q1). A storage evicted after its consumer never joins it.
	QuirkProducer Quirks = 1 << iota
	// QuirkNoOwn leaves the own cost out of the score (q2).
	QuirkNoOwn
	// QuirkTwice adds the sum of a component once for each neighbor in it (q3).
	QuirkTwice
	// QuirkClamp counts a component as at least the own cost of the neighbor in it (q4).
	QuirkClamp
	// QuirkReset removes a restored storage from its component by making its node a root, which
	// cuts off the nodes below it (q5).
	QuirkReset
	// QuirkResident removes outputs that stayed resident from their components when their operator
	// reruns (q6).
	QuirkResident
	// QuirkHalf makes SampleMGE draw strides below √n, 0 included, instead of √n. So it covers
	// only about half of the pool, and some candidates twice (q7).
	QuirkHalf
	// QuirkUnaligned looks for free memory right above the requested bytes, and so misses it where
	// rounding made the block larger (q8).
	QuirkUnaligned
	// QuirkHeads counts free bytes of an adjacent region, which can never merge (q9).
	QuirkHeads
	// QuirkVector keeps candidates in a vector, where the last replaces a removed one and the first
	// of equal scores wins.
	QuirkVector
	// QuirkUncounted never counts recomputations, as in MegEngine since 1.6.
	QuirkUncounted

	endQuirks
	// AllQuirks is the behaviour of MegEngine since 1.7. In 1.6 sampling differs: it takes the
	// first candidates.
	AllQuirks = endQuirks - 1
)

// quirkNames holds the name of each bit, lowest first.
var quirkNames = []string{"q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "vector", "uncounted"}

// String returns the names, separated by commas, as ParseQuirks reads them.
func (q Quirks) String() string {
	names := []string{}
	for i, name := range quirkNames {
		if q&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseQuirks reads a comma-separated list of q1 to q9, vector, uncounted and all; it may be empty.
func ParseQuirks(text string) (Quirks, error) {
	if text == "" {
		return 0, nil
	}
	set := Quirks(0)
next:
	for name := range strings.SplitSeq(text, ",") {
		if name == "all" {
			set |= AllQuirks
			continue
		}
		for i, known := range quirkNames {
			if name == known {
				set |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("quirk %q: want %s, all", name, strings.Join(quirkNames, ", "))
	}
	return set, nil
}
