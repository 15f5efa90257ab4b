package trace

import (
	"cmp"
	"maps"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// Describe summarizes a trace. It walks it once, and a second time if it has steps.
//
// Memory grows with the live allocations, the distinct sizes, lifetimes and ids, the marks, and the
// allocations of two steps. O(events · log events). Equal traces give equal results from any
// source. It fails if the source does.
func Describe(s Source) (Info, error) {
	h := s.Head().Header
	d := describer{
		s: s, marks: marks{s: s}, streams: map[device.Stream]*StreamCount{}, pools: map[uint64]bool{},
		first: NoTime, last: NoTime,
		in: Info{Name: h.Name, Format: h.Format, Hash: h.Hash, Meta: h.Meta, PeakAt: -1},
	}
	if err := walk(s, d.add); err != nil {
		return Info{}, err
	}
	steps, err := stepInfo(s, d.marks.steps())
	if err != nil {
		return Info{}, err
	}
	d.in.Steps = steps
	return d.info(), nil
}

// Info is [Describe] for a trace in memory, which cannot fail.
func (t *Trace) Info() Info {
	in, _ := Describe(t)
	return in
}

// describer computes an Info event by event.
type describer struct {
	s        Source
	in       Info
	marks    marks
	ledger   Ledger
	refused  Refusals
	coverage Coverage
	counts   [numKinds]int
	streams  map[device.Stream]*StreamCount
	stream   *StreamCount // of the previous event
	tags     []TagCount   // by tag
	pools    map[uint64]bool
	births   []lifetime // by slot

	sizes, ids, events, times multiset // sizes and ids of allocations; lifetimes
	first, last               int64    // first and last known time
}

// lifetime describes the allocation in a slot.
type lifetime struct {
	born, freed int   // numbers of the events
	time        int64 // time of the birth
	atStart     bool
}

func (d *describer) add(i int, e *Event) error {
	d.in.Events++
	d.counts[e.Kind]++
	if d.ledger.Step(e) {
		d.in.PeakAt = i
	}
	d.refused.Step(e)
	d.coverage.Step(e)
	if e.Time != NoTime {
		if d.first == NoTime {
			d.first = e.Time
		}
		d.last = e.Time
	}
	switch e.Kind {
	case Alloc, LiveAtStart:
		d.born(i, e)
	case Free:
		d.freed(i, e)
	case Completed:
		if i > d.births[e.Slot].freed+1 {
			d.in.Lives.Delayed++
		}
	case Use:
		d.streamOf(e).Uses++
	case PoolBegin:
		d.pools[e.Arg] = true
	case Refused:
		d.in.Refused = max(d.in.Refused, e.Size)
	}
	return d.marks.add(i, e)
}

func (d *describer) streamOf(e *Event) *StreamCount {
	if d.stream == nil || d.stream.Stream != e.Stream {
		s := d.streams[e.Stream]
		if s == nil {
			s = &StreamCount{Stream: e.Stream}
			d.streams[e.Stream] = s
		}
		d.stream = s
	}
	return d.stream
}

func (d *describer) born(i int, e *Event) {
	d.in.Allocs++
	s := d.streamOf(e)
	s.Allocs++
	s.Bytes = addSize(s.Bytes, e.Size)

	d.tags = grown(d.tags, e.Tag)
	c := &d.tags[e.Tag]
	if c.Allocs == 0 {
		c.Tag = d.s.TagOf(e)
	}
	c.Allocs++
	c.Bytes = addSize(c.Bytes, e.Size)

	d.sizes.add(uint64(e.Size))
	d.ids.add(e.ID)
	d.in.Sizes.Total = addSize(d.in.Sizes.Total, e.Size)
	d.births = grown(d.births, e.Slot)
	d.births[e.Slot] = lifetime{born: i, time: e.Time, atStart: e.Kind == LiveAtStart}
}

func (d *describer) freed(i int, e *Event) {
	b := &d.births[e.Slot]
	b.freed = i
	d.events.add(uint64(i - b.born))
	d.in.Lives.Freed++
	if b.atStart {
		d.in.Lives.FromStart++
	}
	if b.time != NoTime && e.Time != NoTime {
		d.times.add(uint64(e.Time - b.time))
	}
}

func (d *describer) info() Info {
	in := &d.in
	in.Kinds, in.Streams = []KindCount{}, []StreamCount{}
	for k := range Kinds {
		if d.counts[k] > 0 {
			in.Kinds = append(in.Kinds, KindCount{k.String(), d.counts[k]})
		}
	}
	for _, s := range slices.Sorted(maps.Keys(d.streams)) {
		in.Streams = append(in.Streams, *d.streams[s])
	}
	in.Tags = d.tagCounts()
	in.History = !d.coverage.Empty()
	in.Marks, in.Pools = d.counts[Mark], len(d.pools)
	in.Peak, in.PeakLive = d.ledger.peak, d.ledger.peakCount
	in.End, in.EndLive = d.ledger.Live(), d.ledger.count
	in.Timed, in.Duration = d.first != NoTime, d.last-d.first
	if n := d.sizes.count; n > 0 {
		list := d.sizes.ranks(0, (n-1)/2, n-1)
		in.Sizes.Min, in.Sizes.Median, in.Sizes.Max = device.Size(list[0]), device.Size(list[1]), device.Size(list[2])
		in.Sizes.Distinct = d.sizes.distinct
		d.ids.pack()
		in.Slots = d.ids.distinct
	}
	if r := &d.refused; r.Count > 0 {
		in.Refusals = &RefusalInfo{Count: r.Count, LastAt: r.LastAt, Last: r.Last.Size, Died: r.Died}
	}
	l := &in.Lives
	l.Kept = in.Allocs - l.Freed
	median, p90, most := d.events.spread()
	l.MedianEvents, l.P90Events, l.MaxEvents = int(median), int(p90), int(most)
	l.Timed = d.times.count
	median, p90, most = d.times.spread()
	l.MedianTime, l.P90Time, l.MaxTime = int64(median), int64(p90), int64(most)
	return *in
}

// tagCounts returns nil for a trace without tagged allocations.
func (d *describer) tagCounts() []TagCount {
	list := slices.DeleteFunc(d.tags, func(c TagCount) bool { return c.Allocs == 0 })
	if len(list) == 0 || len(list) == 1 && list[0].Tag == "" {
		return nil
	}
	slices.SortFunc(list, func(a, b TagCount) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Tag, b.Tag))
	})
	return list
}
