package replay

import (
	"context"
	"errors"
	"math"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// survey is the data about a whole trace that a replay needs before the first event. It
// takes one walk.
type survey struct {
	streams     []device.Stream // streams of the requests, in order of first use
	numbers     map[device.Stream]uint32
	bound       device.Size // see [Prepared.LowerBound]
	live        int         // most allocations at once
	late        delays      // nil if no free is delayed
	uses        bool        // streams use blocks of other streams
	changes     bool        // the program changes settings
	pauses      bool        // the program pauses
	marks       trace.Marks
	pending     bool  // a free leaves memory pending, if the strategy handles streams
	reservedErr error // the first event that uses a stream number reserved for delayed frees
	keep        bool  // places are not reused, because freed blocks may still be named
	refusals    trace.Refusals
	coverage    trace.Coverage
}

// surveyor walks a trace.
type surveyor struct {
	survey
	src    trace.Source
	ledger trace.Ledger
	slots  []blockLife // by slot; nil if no event needs it
	tracks bool        // slots is filled
	last   device.Stream
}

// blockLife holds the life of the allocation in a slot. Events are counted from 1; 0 means not
// reached.
type blockLife struct {
	born, freed uint32
	used        bool
}

// errLong refuses traces whose events have no 32-bit numbers.
var errLong = errors.New("more than 4294967295 events")

// surveyOf walks a trace. For a trace in memory it builds the table of slots only if an event needs
// it, because slots number all allocations. It returns the error of ctx soon after that ends.
func surveyOf(ctx context.Context, src trace.Source) (*survey, error) {
	head := src.Head()
	if uint64(head.Events) >= math.MaxUint32 {
		return nil, errLong
	}
	s := &surveyor{survey: survey{numbers: map[device.Stream]uint32{}}, tracks: true, src: src}
	if t, ok := src.(*trace.Trace); ok {
		s.tracks = false
		for i := range t.Events {
			s.foresee(t.Events[i].Kind)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	_, s.keep = head.Header.Get(faultKey)
	at := uint32(0)
	err := src.Batches(func(events []trace.Event) error {
		for i := range events {
			if i%progressStep == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			at++
			s.step(at, &events[i])
		}
		return nil
	})
	s.bound, s.live = s.ledger.Peak(), s.ledger.PeakCount()
	found := s.survey // the tables of the walk are garbage
	return &found, err
}

// foresee sets tracks if an event of this kind needs the table of slots.
func (s *surveyor) foresee(k trace.Kind) {
	s.tracks = s.tracks || k == trace.Use || k == trace.Completed
}

func (s *surveyor) step(at uint32, e *trace.Event) {
	s.ledger.Step(e)
	s.refusals.Step(e)
	s.coverage.Step(e)
	if s.reservedErr == nil {
		s.reservedErr = checkStream(int(at-1), e)
	}
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart, trace.Refused:
		s.addStream(e.Stream)
	case trace.Use:
		s.uses = true
	case trace.Conf:
		s.changes = true
	case trace.Pause:
		s.pauses = true
	case trace.Mark:
		s.marks.Add(s.src.TagOf(e), int(at-1))
	case trace.BadFree, trace.Fault:
		// A freed block may be named again, or stay live after its free in the trace.
		s.keep = true
	}
	if s.tracks && e.Slot != trace.NoSlot {
		s.track(at, e)
	}
}

func (s *surveyor) addStream(of device.Stream) {
	if of == s.last && len(s.streams) > 0 {
		return
	}
	s.last = of
	if _, ok := s.numbers[of]; !ok {
		s.numbers[of] = uint32(len(s.streams))
		s.streams = append(s.streams, of)
	}
}

// track updates the allocation of an event.
func (s *surveyor) track(at uint32, e *trace.Event) {
	if n := int(e.Slot) + 1 - len(s.slots); n > 0 {
		s.slots = append(s.slots, make([]blockLife, n)...)
	}
	p := &s.slots[e.Slot]
	switch e.Kind {
	case trace.Alloc, trace.LiveAtStart:
		*p = blockLife{born: at}
	case trace.Use:
		p.used = true
	case trace.Free:
		p.freed = at
		s.pending = s.pending || p.used
	case trace.Completed:
		// A free that becomes final at the very next event is not delayed, and one whose id is
		// given again first never does: the trace does not record when it became final.
		if p.freed != 0 && at > p.freed+1 {
			s.late.add(p.born-1, p.freed-1, at-1)
			s.pending = true
		}
		p.freed = 0
	}
}
