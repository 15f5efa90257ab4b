package props

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/harness/trace"
)

// Misled returns the subject with forecasts, lifetimes and marks that are wrong, or right by
// chance, for a strategy that uses them: every invariant holds all the same. They follow from the
// seed and the sequence. The subject itself gets the same sequences.
func (s Subject) Misled() Subject {
	if !s.misled {
		s.misled = true
		s.Name += "/misled"
	}
	return s
}

// Learns reports whether the strategy uses hints of the program: whether it is a
// [power.Planner] or [power.Informed]. It builds the strategy once.
func (s Subject) Learns() bool {
	p, err := s.Profile(0)
	return err == nil && p.learns
}

// mislead gives the subject the forecast for a sequence. The seed decides which: the sequence
// itself, the sequence backwards, two thirds of it, or no calls at all.
func (r *runner) mislead(seq Sequence) {
	seq = slices.Clone(seq)
	switch uint64(r.seed) % 4 {
	case 1:
		slices.Reverse(seq)
	case 2:
		n := 0
		seq = slices.DeleteFunc(seq, func(Op) bool { n++; return n%3 == 0 })
	case 3:
		seq = nil
	}
	r.subject.forecast = slices.Values(expected(seq))
}

// expected returns the calls of a sequence, as if every request were granted. Trims are marks.
func expected(seq Sequence) (calls []power.Expected) {
	var live []int
	for _, op := range seq {
		x := power.Expected{Other: -1}
		switch op.Kind {
		case OpAlloc:
			x.Request = op.request(0)
			live = append(live, len(calls))
		case OpFree:
			if len(live) == 0 {
				continue
			}
			i := int(op.Pick % uint64(len(live)))
			x.Kind, x.Other = power.ExpectFree, live[i]
			calls[x.Other].Other = len(calls)
			live = slices.Delete(live, i, i+1)
		case OpTrim:
			x.Kind = power.ExpectMark
		default:
			continue
		}
		calls = append(calls, x)
	}
	return calls
}

// requestOf returns the request of an operation with an id, as the subject gets it.
func (r *runner) requestOf(op Op, id uint64) alloc.Request {
	q := op.request(id)
	if r.subject.misled {
		n := (uint64(r.seed)<<32 + id) * 0x9e3779b97f4a7c15 // Fibonacci hashing: the high bits are mixed
		q.Origin = alloc.OriginOf(1+n>>61, uint32(1+n>>58%4)).WithLifetime(alloc.Lifetime(n >> 56 % 4))
	}
	return q
}

// markEvery is the number of operations of a misled subject between two marks.
const markEvery = 16

// mark passes a mark to both instances of a misled subject at intervals, the first with the first
// operation.
func (r *runner) mark() {
	if !r.subject.misled || r.step%markEvery != 1 {
		return
	}
	for _, m := range r.machines {
		_ = power.Mark(m.Strategy, "") // if it has the power
	}
	if r.record {
		r.events = append(r.events, trace.Event{Kind: trace.Mark, Slot: trace.NoSlot, Time: trace.NoTime})
	}
}
