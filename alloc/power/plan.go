package power

import (
	"iter"

	"github.com/vramyard/vramyard/alloc"
)

// Planner prepares for a run with the calls of an earlier one.
type Planner interface {
	// Plan passes a forecast, once and before the first request. The run may differ from it in any
	// call; every promise holds even then. The strategy may reserve memory for its plan, but grants
	// nothing.
	Plan(Forecast)
}

// Forecast yields the calls of an earlier run in order. It may be ranged over any number of times
// and by several goroutines at once. A strategy skips calls of unknown kinds: more
// may be added.
type Forecast = iter.Seq[Expected]

// Expected is one call of a [Forecast]. Calls are counted from 0.
type Expected struct {
	Kind ExpectedKind // kind of the call
	// ExpectAlloc: the request. Its ID is from the earlier run. Its Tag is 0, because each trace
	// numbers its tags differently.
	Request alloc.Request
	// ExpectAlloc: the number of the call that frees the block, -1 if none does. ExpectFree: the
	// number of the call that requested the block.
	Other int
	Mark  string // ExpectMark: its text, see [Informed]
}

// ExpectedKind is the call of an [Expected].
type ExpectedKind uint8

// The kinds.
const (
	ExpectAlloc ExpectedKind = iota // Alloc
	ExpectFree                      // Free
	ExpectMark                      // Mark
)

// Plan passes a forecast to s. It fails with [alloc.ErrUnsupported] if s is not a [Planner].
func Plan(s alloc.Inspector, f Forecast) error {
	return require(s, PowerPlanner, func(p Planner) { p.Plan(f) })
}
