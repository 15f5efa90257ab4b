package linear

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/props"
)

// ErrUndecided means that the search for an order ended before it found or excluded one.
var ErrUndecided = errors.New("linear: undecided: the history is too tangled")

// mostSteps bounds the search for an order, so that a verdict does not depend on the speed of the
// machine. A history of 10,000 calls on four blocks takes some 20,000 steps.
const mostSteps = 1 << 20

// Model returns the sequential strategy of equal blocks at the given addresses. Its state
// is the set of live blocks, so that there may be at most 64 of them.
func Model(blocks []device.Addr) porcupine.Model {
	index := map[device.Addr]uint{}
	for i, a := range blocks {
		index[a] = uint(i)
	}
	all := uint64(1)<<len(blocks) - 1
	return porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, input, output any) (bool, any) {
			return step(state.(uint64), all, index, input.(Call), output.(Answer))
		},
		DescribeOperation: func(input, output any) string { return describe(input.(Call), output.(Answer)) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%0*b live", len(blocks), state.(uint64)) },
	}
}

// step reports whether an answer is right for a set of live blocks, and returns the set afterwards.
func step(live, all uint64, index map[device.Addr]uint, c Call, a Answer) (right bool, after uint64) {
	if c.Kind == Live {
		return a.Live == ones(live), live
	}
	at := c.Addr
	if c.Kind == Alloc {
		at = a.Addr
	}
	i, known := index[at]
	held := known && live>>i&1 == 1
	switch {
	case c.Kind == Alloc && a.Err == nil:
		return known && !held, live | 1<<i
	case c.Kind == Alloc:
		return errors.Is(a.Err, alloc.ErrOutOfMemory) && live == all, live
	case a.Err == nil:
		return held, live &^ (1 << i)
	default:
		return errors.Is(a.Err, alloc.ErrInvalidFree) && !held, live
	}
}

func ones(set uint64) (n int) {
	for ; set != 0; set &= set - 1 {
		n++
	}
	return n
}

func describe(c Call, a Answer) string {
	outcome := "done"
	if a.Err != nil {
		outcome = a.Err.Error()
	}
	switch c.Kind {
	case Alloc:
		if a.Err == nil {
			outcome = a.Addr.String()
		}
		return "Alloc: " + outcome
	case Free:
		return fmt.Sprintf("Free %v: %s", c.Addr, outcome)
	}
	return fmt.Sprintf("%d live", a.Live)
}

// Check checks invariant I45 for a history on a strategy of that many equal blocks, all free
// at its beginning. The error is a [*props.Violation] if no order explains the answers, and
// [ErrUndecided] if a million steps of the search are not enough to know.
func Check(h History, blocks int) error {
	at := h.blocks()
	if len(at) > blocks {
		return &props.Violation{
			Number: props.ILinear,
			Detail: fmt.Sprintf("%d different blocks were granted, there are %d", len(at), blocks),
		}
	}
	// Blocks that were never granted stay free and have no address.
	for i := len(at); i < blocks; i++ {
		at = append(at, ^device.Addr(i))
	}
	model := Model(at)
	switch explained, decided := explain(model, h); {
	case explained:
		return nil
	case !decided:
		return ErrUndecided
	default:
		return &props.Violation{
			Number: props.ILinear,
			Detail: fmt.Sprintf("no order of the %d calls explains their answers; those around which every order fails:\n%s",
				len(h), stuck(h, model)),
		}
	}
}

// explain reports whether an order explains the answers of a history, and whether the search for
// one came to its end. Past the bound every answer counts as wrong, which ends the search.
func explain(model porcupine.Model, h History) (explained, decided bool) {
	steps, step := 0, model.Step
	model.Step = func(state, input, output any) (bool, any) {
		if steps++; steps > mostSteps {
			return false, state
		}
		return step(state, input, output)
	}
	explained = porcupine.CheckOperations(model, h)
	return explained, steps <= mostSteps
}

func (h History) blocks() (all []device.Addr) {
	for _, o := range h {
		if a := o.Output.(Answer); o.Input.(Call).Kind == Alloc && a.Err == nil {
			all = append(all, a.Addr)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// stuck returns the last calls of the shortest prefix of the history that no order explains. A
// prefix omits calls that began later; if the whole history is explained, so is every prefix.
func stuck(h History, model porcupine.Model) string {
	const shown = 12
	sorted := slices.Clone(h)
	slices.SortFunc(sorted, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	n := 1 + sort.Search(len(sorted), func(n int) bool {
		explained, decided := explain(model, beginning(sorted, n+1))
		return !explained && decided
	})
	var b strings.Builder
	for _, o := range sorted[max(n-shown, 0):min(n, len(sorted))] {
		fmt.Fprintf(&b, "\tcaller %d, %d to %d: %s\n", o.ClientId, o.Call, o.Return,
			describe(o.Input.(Call), o.Output.(Answer)))
	}
	return b.String()
}

// beginning returns the calls that had ended when the nth did, and the calls in progress, which may
// have taken effect already.
func beginning(byReturn History, n int) History {
	end := byReturn[n-1].Return
	cut := slices.Clone(byReturn[:n])
	for _, o := range byReturn[n:] {
		if o.Call < end {
			cut = append(cut, o)
		}
	}
	return cut
}
