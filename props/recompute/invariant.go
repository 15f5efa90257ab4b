package recompute

import "fmt"

// Number names an invariant of runs. Numbers are stable.
type Number int

// The invariants; harness/remat has them in words.
const (
	MBytes       Number = 1 + iota // resident bytes are accounted and within the budget
	MContents                      // inputs are resident and have their first value
	MKept                          // storages that cannot be recomputed stay
	MGone                          // storages freed for good are not needed
	MCounts                        // the result counts the events
	MHonest                        // running out is true
	MNeedless                      // with enough memory nothing is evicted for it
	MDeterminism                   // the same log gives the same run
	MDetach                        // detach frees the storages without references
	MDrop                          // a drop evicts at once
	MAgreement                     // banish and detach agree without a budget
	MTwice                         // sublinear runs an operator twice at most
	MRoots                         // sublinear needs two roots of a chain
	MOptimal                       // chain-optimal is never slower than sublinear
	MDefaults                      // settings at their defaults change nothing
	MScale                         // the unit of time changes nothing
	MSwapped                       // swapped bytes come back, are given up, or are on the host
	MHost                          // the host holds no more than its capacity
	MLink                          // copies take their time, and an infinite link takes none
	MSwapOnly                      // swapping alone recomputes nothing

	endNumbers
)

// String returns the name of the invariant in documents and reports.
func (n Number) String() string { return fmt.Sprintf("M%d", int(n)) }

// Numbers yields all invariants in order.
func Numbers(yield func(Number) bool) {
	for n := MBytes; n < endNumbers && yield(n); n++ {
	}
}

// Violation is a broken invariant.
type Violation struct {
	Number string // of this package, or I35 of props for a panic
	Detail string // the mistake of the run
}

// Error implements error.
func (v *Violation) Error() string { return v.Number + ": " + v.Detail }
