package page

import (
	"cmp"
	"math"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// Grid is the event axis of all pictures of a trace: buckets of equally many events; the last may
// be shorter.
type Grid struct {
	Events int // events of the trace
	Shift  int // event i is in bucket i >> Shift
}

// newGrid returns the finest grid with at most buckets buckets.
func newGrid(events, buckets int) Grid {
	g := Grid{Events: events}
	for g.Len() > max(buckets, 1) {
		g.Shift++
	}
	return g
}

// Len returns the number of buckets.
func (g Grid) Len() int { return (g.Events + 1<<g.Shift - 1) >> g.Shift }

// First returns the first event of a bucket.
func (g Grid) First(bucket int) int { return bucket << g.Shift }

// Last returns the last event of a bucket.
func (g Grid) Last(bucket int) int { return min((bucket+1)<<g.Shift, g.Events) - 1 }

// Trace is the data of a trace that does not depend on a strategy.
type Trace struct {
	Head         trace.Head      // origin and length
	Grid         Grid            // event axis
	LowerBound   device.Size     // peak of requested live bytes
	Bound        []float64       // by bucket: peak of requested live bytes
	Times        []int64         // by bucket: ns at its last event; nil if the trace has no times
	Marks        []Mark          // in order, up to a limit
	MarksOmitted int             // omitted marks
	Tags         []string        // the tags of the most byte-events; Tags[0] means all others
	Streams      []device.Stream // of requests, in order of first use

	src     trace.Source
	tags    map[string]uint32
	streams map[device.Stream]uint16
}

// Mark is a mark in a trace.
type Mark struct {
	Event int    // its number
	Time  int64  // nanoseconds, or trace.NoTime
	Text  string // the text
}

const (
	mostMarks = 2000
	mostTags  = 4096

	// OtherStream means any stream that is not in Trace.Streams.
	OtherStream = math.MaxUint16
)

// NewTrace reads the source of a [replay.Prepared] once. It fails if the trace cannot be read.
func NewTrace(src trace.Source, o Options) (*Trace, error) {
	o = o.withDefaults()
	head := src.Head()
	t := &Trace{
		Head: head, Grid: newGrid(head.Events, o.Buckets), src: src,
		tags: map[string]uint32{}, streams: map[device.Stream]uint16{},
	}
	t.Bound = make([]float64, t.Grid.Len())
	s := &scan{Trace: t, now: trace.NoTime, times: make([]int64, t.Grid.Len()), weights: map[string]*weight{}}
	err := src.Batches(func(events []trace.Event) error {
		for i := range events {
			if err := o.step(s.i); err != nil {
				return err
			}
			s.see(&events[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.finish()
	return t, nil
}

// scan is the state of [NewTrace].
type scan struct {
	*Trace
	i       int // index of the event
	ledger  trace.Ledger
	now     int64 // of the last event with a time
	times   []int64
	live    []birth // by slot
	weights map[string]*weight
	texts   []*weight // by tag index, equal texts once
}

// birth is the live allocation in a slot.
type birth struct {
	event int
	size  device.Size
	tag   *weight // nil: no tag, or freed
}

// weight is the byte-events of a tag.
type weight struct {
	text       string
	byteEvents float64
}

func (s *scan) see(e *trace.Event) {
	s.ledger.Step(e)
	bucket := s.i >> s.Grid.Shift
	s.Bound[bucket] = max(s.Bound[bucket], float64(s.ledger.Reached()))
	if e.Time != trace.NoTime {
		s.now = e.Time
	}
	s.times[bucket] = s.now
	switch e.Kind {
	case trace.Refused:
		s.stream(e.Stream)
	case trace.Alloc, trace.LiveAtStart:
		s.stream(e.Stream)
		s.begin(e)
	case trace.Free:
		if int(e.Slot) < len(s.live) {
			s.end(e.Slot)
		}
	case trace.Mark:
		if len(s.Marks) < mostMarks {
			s.Marks = append(s.Marks, Mark{s.i, s.now, s.src.TagOf(e)})
		} else {
			s.MarksOmitted++
		}
	}
	s.i++
}

func (s *scan) stream(of device.Stream) {
	if _, ok := s.streams[of]; !ok && len(s.Streams) < OtherStream {
		s.streams[of] = uint16(len(s.Streams))
		s.Streams = append(s.Streams, of)
	}
}

// begin starts counting the byte-events of an allocation's tag.
func (s *scan) begin(e *trace.Event) {
	if int(e.Slot) < len(s.live) {
		s.end(e.Slot)
	}
	text := s.src.TagOf(e)
	if text == "" {
		return
	}
	if n := int(e.Slot) + 1 - len(s.live); n > 0 {
		s.live = append(s.live, make([]birth, n)...)
	}
	w := s.weights[text]
	if w == nil {
		w = &weight{text: text}
		s.weights[text] = w
		s.texts = append(s.texts, w)
	}
	s.live[e.Slot] = birth{s.i, e.Size, w}
}

func (s *scan) end(slot uint32) {
	if b := &s.live[slot]; b.tag != nil {
		b.tag.byteEvents += float64(b.size) * float64(s.i-b.event)
		b.tag = nil
	}
}

// finish selects the heaviest tags.
func (s *scan) finish() {
	for slot := range s.live {
		s.end(uint32(slot))
	}
	s.LowerBound = s.ledger.Peak()
	if s.now != trace.NoTime {
		s.Times = s.times
	}
	slices.SortStableFunc(s.texts, func(a, b *weight) int { return cmp.Compare(b.byteEvents, a.byteEvents) })
	s.Tags = []string{""}
	for _, w := range s.texts[:min(len(s.texts), mostTags-1)] {
		s.tags[w.text] = uint32(len(s.Tags))
		s.Tags = append(s.Tags, w.text)
	}
}

func (t *Trace) tagOf(e *trace.Event) uint32 {
	if text := t.src.TagOf(e); text != "" {
		return t.tags[text]
	}
	return 0
}

func (t *Trace) streamOf(s device.Stream) uint16 {
	if n, ok := t.streams[s]; ok {
		return n
	}
	return OtherStream
}
