package remat

import (
	"fmt"
	"strings"
)

// Quirks is a set of what MegEngine does by mistake, or by its nature, and what is mended unless it
// is asked for. q1 to q9 are defects. Two more are no quirks here but a [Config]'s own: that a pool
// of a stream gives up tensors although the device has memory, and that a threshold is only a hint.
type Quirks uint16

// The quirks. Those that tell of components or of scores bear on the heuristics mge and mge-nofrag
// alone.
const (
	// QuirkProducer looks for evicted neighbours among the inputs and the outputs of the producer, not
	// among consumers (q1). What was evicted after its consumer never joins it.
	QuirkProducer Quirks = 1 << iota
	// QuirkNoOwn leaves the own cost out of a score (q2).
	QuirkNoOwn
	// QuirkTwice adds the sum of a component once for each neighbour in it (q3).
	QuirkTwice
	// QuirkClamp takes a component for worth at least the cost of the neighbour in it (q4).
	QuirkClamp
	// QuirkReset takes what comes back out of its component by making its node a component of its own:
	// what hangs below the node is lost to the others (q5).
	QuirkReset
	// QuirkResident takes outputs out of their components that were there when their operator ran
	// again (q6).
	QuirkResident
	// QuirkHalf lets SampleMGE draw each step anew from 0 on, so that it looks at half the candidates,
	// and at some twice (q7).
	QuirkHalf
	// QuirkUnaligned asks what is free behind the bytes that were requested, and so misses it where a
	// block is larger (q8).
	QuirkUnaligned
	// QuirkHeads counts free bytes that can never merge, because they lie in another region (q9).
	QuirkHeads
	// QuirkVector keeps candidates in a vector in which the last takes the place of one that goes, and
	// takes the first of equal scores.
	QuirkVector
	// QuirkUncounted never counts how often a tensor was made again, as MegEngine 1.6 and later.
	QuirkUncounted

	endQuirks
	// AllQuirks is MegEngine as coded since 1.6.
	AllQuirks = endQuirks - 1
)

// quirkNames is the names of the quirks, by bit.
var quirkNames = []string{"q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "vector", "uncounted"}

// String returns the names in the form that ParseQuirks reads.
func (q Quirks) String() string {
	names := []string{}
	for i, name := range quirkNames {
		if q&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseQuirks reads the names of quirks with commas between: q1 to q9, vector, uncounted; all; or
// nothing.
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
