package gate

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
)

// canonical is a part of a recording in its canonical form.
type canonical struct {
	*trace.Trace
	work    int      // index of the first event of the judged work
	ids     []uint64 // by id: the id in the recording
	opening int      // blocks live before the part
	delayed int      // frees of the part that completed later than requested
}

// numbering numbers streams, threads or pools by their first use, from 1. 0 stays 0.
type numbering map[uint64]uint64

func (n numbering) of(x uint64) uint64 {
	if x == 0 {
		return 0
	}
	if _, ok := n[x]; !ok {
		n[x] = uint64(len(n)) + 1
	}
	return n[x]
}

func (n numbering) stream(s device.Stream) device.Stream {
	if s == trace.AllStreams {
		return s
	}
	return device.Stream(n.of(uint64(s)))
}

// rewriter rewrites a part of a trace.
type rewriter struct {
	*canonical
	part                    *trace.Trace
	b                       *trace.Builder
	live                    map[uint64]uint64 // new ids by the part's
	streams, threads, pools numbering
}

// opened is a block that is live before the work.
type opened struct {
	trace.Event
	tag  string
	end  int        // number of its free among the frees of the work; math.MaxInt: it is never freed
	pool *poolState // private pool; nil: none
}

// poolState is a private pool before the work.
type poolState struct {
	pool     uint64
	closed   int       // redirections that began and ended
	blocks   []*opened // allocated in the pool
	releases int
	options  uint32 // tag of its options
}

// canonicalOf returns the canonical form of a part. stepped parts begin with the mark of a step;
// the judged work begins at the mark after skip others.
func canonicalOf(part *trace.Trace, stepped bool, skip int) (*canonical, error) {
	r := &rewriter{
		canonical: &canonical{}, part: part, b: trace.NewBuilder(part.Header), live: map[uint64]uint64{},
		streams: numbering{}, threads: numbering{}, pools: numbering{},
	}
	first := slices.IndexFunc(part.Events, func(e trace.Event) bool {
		if stepped {
			return e.Kind == trace.Mark
		}
		return e.Kind != trace.LiveAtStart
	})
	if first < 0 {
		first = len(part.Events)
	}
	r.number(part.Events[first:])
	if err := r.open(part.Events[:first], part.Events[first:]); err != nil {
		return nil, err
	}
	if err := r.copy(part.Events[first:], stepped, skip); err != nil {
		return nil, err
	}
	r.Trace = r.b.Trace()
	return r.canonical, nil
}

// number numbers the streams, threads and pools of events.
func (r *rewriter) number(events []trace.Event) {
	for i := range events {
		switch e := &events[i]; e.Kind {
		case trace.Alloc, trace.Refused:
			r.streams.stream(e.Stream)
			r.threads.of(uint64(e.Thread))
		case trace.PoolBegin:
			r.pools.of(e.Arg)
			r.streams.stream(e.Stream)
		case trace.PoolEnd, trace.PoolRelease:
			r.pools.of(e.Arg)
		}
	}
}

// open adds the state before the work: its live blocks, private pools, the safe frontier, changed
// settings and paused tags.
func (r *rewriter) open(events, work []trace.Event) error {
	var plain []*opened
	var pools []*poolState
	var open []trace.Event // redirections that continue
	var frontier, confs, pauses []trace.Event
	live := map[uint64]*opened{}
	poolOf := func(n uint64) *poolState {
		i := slices.IndexFunc(pools, func(p *poolState) bool { return p.pool == n })
		if i < 0 {
			i, pools = len(pools), append(pools, &poolState{pool: n})
		}
		return pools[i]
	}
	for _, e := range events {
		switch e.Kind {
		case trace.LiveAtStart, trace.Alloc:
			o := &opened{Event: e, tag: r.part.TagOf(&e), end: math.MaxInt}
			live[e.ID] = o
			if e.Kind == trace.LiveAtStart {
				plain = append(plain, o)
			} else {
				o.pool = poolOf(open[len(open)-1].Arg)
				o.pool.blocks = append(o.pool.blocks, o)
			}
		case trace.Free:
			delete(live, e.ID)
		case trace.PoolBegin:
			open = append(open, e)
		case trace.PoolEnd:
			p := poolOf(e.Arg)
			p.closed++
			p.options = open[len(open)-1].Tag
			open = open[:len(open)-1]
		case trace.PoolRelease:
			poolOf(e.Arg).releases++
		case trace.Frontier:
			frontier = []trace.Event{e}
		case trace.Conf:
			confs = append(confs, e)
		case trace.Pause, trace.Resume:
			pauses = append(pauses, e)
		}
	}
	for n, i := 0, 0; i < len(work); i++ {
		if e := &work[i]; e.Kind == trace.Free {
			if o := live[e.ID]; o != nil && o.end == math.MaxInt {
				o.end = n
			}
			n++
		}
	}
	r.number(open)
	dead := func(o *opened) bool { return live[o.ID] != o }
	plain = slices.DeleteFunc(plain, dead)
	all := slices.Clone(plain)
	for _, p := range pools {
		p.blocks = slices.DeleteFunc(p.blocks, dead)
		slices.SortStableFunc(p.blocks, r.compareRequests)
		all = append(all, p.blocks...)
	}
	r.numberOpening(all)
	slices.SortStableFunc(plain, r.compare)
	return r.addOpening(plain, pools, slices.Concat(confs, open, frontier, pauses))
}

// numberOpening numbers the streams that the work does not use: those with the most bytes first,
// and then by their blocks. Streams that compare as equal are interchangeable.
func (r *rewriter) numberOpening(blocks []*opened) {
	slices.SortStableFunc(blocks, func(a, b *opened) int {
		return cmp.Or(r.compareRequests(a, b), r.comparePools(a.pool, b.pool))
	})
	of := map[device.Stream][]*opened{}
	var others []device.Stream
	for _, o := range blocks {
		if _, ok := r.streams[uint64(o.Stream)]; ok || o.Stream == 0 {
			continue
		}
		if of[o.Stream] == nil {
			others = append(others, o.Stream)
		}
		of[o.Stream] = append(of[o.Stream], o)
	}
	slices.SortStableFunc(others, func(a, b device.Stream) int {
		return cmp.Or(cmp.Compare(bytesOf(of[b]), bytesOf(of[a])), slices.CompareFunc(of[a], of[b], r.compareRequests),
			slices.CompareFunc(of[a], of[b], func(a, b *opened) int { return r.comparePools(a.pool, b.pool) }))
	})
	for _, s := range others {
		r.streams.stream(s)
	}
}

// bytesOf returns the bytes of blocks.
func bytesOf(blocks []*opened) (n device.Size) {
	for _, o := range blocks {
		n += o.Size
	}
	return n
}

// compare orders blocks. Blocks that compare as equal are interchangeable.
func (r *rewriter) compare(a, b *opened) int {
	return cmp.Or(cmp.Compare(r.streams.stream(a.Stream), r.streams.stream(b.Stream)), r.compareRequests(a, b))
}

// compareRequests orders blocks by all that does not depend on their streams and pools.
func (r *rewriter) compareRequests(a, b *opened) int {
	return cmp.Or(cmp.Compare(b.end, a.end), cmp.Compare(b.Size, a.Size), cmp.Compare(a.Align, b.Align),
		strings.Compare(a.tag, b.tag), cmp.Compare(a.Site, b.Site), cmp.Compare(a.Life, b.Life),
		cmp.Compare(r.thread(a.Thread), r.thread(b.Thread)))
}

// thread returns the number of a thread. Threads that the work does not use count as one.
func (r *rewriter) thread(t uint32) uint32 {
	if _, ok := r.threads[uint64(t)]; ok || t == 0 {
		return uint32(r.threads.of(uint64(t)))
	}
	return uint32(len(r.threads)) + 1
}

// comparePools orders private pools by all that does not depend on streams. nil is none.
func (r *rewriter) comparePools(a, b *poolState) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	rank := func(p *poolState) uint64 {
		return cmp.Or(r.pools[p.pool], math.MaxUint64) // the work does not use it
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(bytesOf(b.blocks), bytesOf(a.blocks)),
		slices.CompareFunc(a.blocks, b.blocks, r.compareRequests), cmp.Compare(a.closed, b.closed),
		cmp.Compare(a.releases, b.releases), strings.Compare(r.optionsOf(a), r.optionsOf(b)))
}

// optionsOf returns the text of the options of a pool.
func (r *rewriter) optionsOf(p *poolState) string { return r.part.TagOf(&trace.Event{Tag: p.options}) }

// addOpening adds the events that restore the state before the work.
func (r *rewriter) addOpening(plain []*opened, pools []*poolState, rest []trace.Event) error {
	var events []trace.Event
	for _, o := range plain {
		events = append(events, o.Event)
	}
	pools = slices.DeleteFunc(pools, func(p *poolState) bool { return len(p.blocks) == 0 && r.pools[p.pool] == 0 })
	for _, p := range pools {
		slices.SortStableFunc(p.blocks, r.compare)
	}
	slices.SortStableFunc(pools, func(a, b *poolState) int {
		return cmp.Or(r.comparePools(a, b), slices.CompareFunc(a.blocks, b.blocks, r.compare))
	})
	for _, p := range pools {
		for n := range p.closed {
			events = append(events, trace.Event{Kind: trace.PoolBegin, Arg: p.pool, Stream: trace.AllStreams,
				Tag: p.options})
			for _, o := range p.blocks {
				if n == 0 {
					events = append(events, o.Event)
				}
			}
			events = append(events, trace.Event{Kind: trace.PoolEnd, Arg: p.pool})
		}
	}
	events = append(events, rest...)
	for _, p := range pools {
		for range p.releases {
			events = append(events, trace.Event{Kind: trace.PoolRelease, Arg: p.pool})
		}
	}
	for _, e := range events {
		if err := r.add(e); err != nil {
			return err
		}
	}
	r.opening, r.work = len(r.ids), len(events)
	return nil
}

// copy adds the events of the work.
func (r *rewriter) copy(work []trace.Event, stepped bool, skip int) error {
	added, marks := r.work, 0
	freed := map[uint64]int{} // by id: the number of its free
	for i, e := range work {
		switch e.Kind {
		case trace.Free:
			freed[e.ID] = i
		case trace.Completed:
			if at, ok := freed[e.ID]; ok && at+1 < i {
				r.delayed++
			}
			continue
		case trace.Mark:
			if stepped && marks == skip {
				r.work = added
			}
			marks++
		case trace.Alloc, trace.Trim, trace.Frontier, trace.PoolBegin, trace.PoolEnd, trace.PoolRelease, trace.Refused,
			trace.Conf, trace.Pause, trace.Resume:
		default:
			continue // the timing of streams, and the inventions of test traces
		}
		if err := r.add(e); err != nil {
			return err
		}
		added++
	}
	return nil
}

// add adds an event of the part with its new names.
func (r *rewriter) add(e trace.Event) error {
	e.Tag = r.b.Tag(r.part.TagOf(&e))
	e.Time = trace.NoTime
	switch e.Kind {
	case trace.LiveAtStart, trace.Alloc:
		r.live[e.ID] = uint64(len(r.ids))
		r.ids = append(r.ids, e.ID)
		e.ID = r.live[e.ID]
	case trace.Free:
		e.ID = r.live[e.ID]
	case trace.PoolBegin, trace.PoolEnd, trace.PoolRelease:
		e.Arg = r.pools.of(e.Arg)
	}
	e.Stream = r.streams.stream(e.Stream)
	e.Thread = r.thread(e.Thread)
	return r.b.Add(e)
}
