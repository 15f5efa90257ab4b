package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// ErrFixedCaptures is wrapped by errors of [Repool] for captures that cannot be moved.
var ErrFixedCaptures = errors.New("the captures cannot be moved")

var (
	errFewCaptures = errors.New("the trace has fewer than two captures")
	errOrdered     = errors.New("the captures are in this order already")
	errNoNeed      = errors.New("no request goes to a private pool")
)

// redirection is the part of a trace between the begin and the end of a private pool. If it
// redirects one stream it is a capture of a graph.
type redirection struct {
	begin, end int           // indexes of its events; end is the number of events if it never ends
	stream     device.Stream // of the redirected requests, or AllStreams
	nested     bool          // another one is open when it begins
	need       device.Size   // most bytes of its requests of one stream that are live at once
	needOn     device.Stream // that stream
}

func (r *redirection) serves(s device.Stream) bool { return r.stream == AllStreams || r.stream == s }

// onStream is a stream in a redirection.
type onStream struct {
	redirection int // index
	stream      device.Stream
}

// pooled is a block that was requested during a redirection.
type pooled struct {
	onStream
	size device.Size // bytes in the pool; 0 if the request was not redirected
}

// redirections are the redirections of a trace, and their blocks.
type redirections struct {
	all    []redirection // in order of their begins
	blocks map[uint32]pooled

	events []Event
	open   []int // indexes
	live   map[onStream]device.Size
}

// redirectionsOf finds the redirections of a trace. If several are open, a request belongs to the
// first that serves its stream.
func redirectionsOf(t *Trace) *redirections {
	r := &redirections{blocks: map[uint32]pooled{}, events: t.Events, live: map[onStream]device.Size{}}
	for i := range t.Events {
		r.step(i, &t.Events[i])
	}
	return r
}

func (r *redirections) step(i int, e *Event) {
	switch e.Kind {
	case PoolBegin:
		r.all = append(r.all, redirection{begin: i, end: len(r.events), stream: e.Stream, nested: len(r.open) > 0})
		r.open = append(r.open, len(r.all)-1)
	case PoolEnd:
		k := slices.IndexFunc(r.open, func(k int) bool { return r.events[r.all[k].begin].Arg == e.Arg })
		if k >= 0 {
			r.all[r.open[k]].end = i
			r.open = slices.Delete(r.open, k, k+1)
		}
	case Alloc, Refused:
		if len(r.open) > 0 {
			r.request(e)
		}
	case Free:
		if b, ok := r.blocks[e.Slot]; ok {
			r.live[b.onStream] -= b.size
		}
	}
}

func (r *redirections) request(e *Event) {
	b := pooled{onStream: onStream{r.open[0], e.Stream}}
	if k := slices.IndexFunc(r.open, func(k int) bool { return r.all[k].serves(e.Stream) }); k >= 0 {
		b.redirection, b.size = r.open[k], e.Size
	}
	if to := &r.all[b.redirection]; r.live[b.onStream]+b.size > to.need {
		to.need, to.needOn = r.live[b.onStream]+b.size, e.Stream
	}
	if e.Kind == Alloc {
		r.blocks[e.Slot] = b
		r.live[b.onStream] += b.size
	}
}

// largestFirst returns a trace whose captures are in descending order of their needs, equal ones in
// their order. With a capture move the events from its begin to its end, and events of its blocks
// before the next capture begins; all others stay in their places. Events of captures have no
// times, and blocks get other names.
func largestFirst(t *Trace) (*Trace, error) {
	m := mover{redirections: redirectionsOf(t)}
	for i := range m.all {
		if m.all[i].stream != AllStreams {
			m.captures = append(m.captures, i)
		}
	}
	if len(m.captures) < 2 {
		return nil, errFewCaptures
	}
	if i := slices.IndexFunc(m.all, func(r redirection) bool { return r.nested }); i >= 0 {
		return nil, fmt.Errorf("%w: another pool is open at event %d", ErrFixedCaptures, m.all[i].begin)
	}
	byNeed := func(a, b int) int { return cmp.Compare(m.all[b].need, m.all[a].need) }
	if slices.IsSortedFunc(m.captures, byNeed) {
		return nil, errOrdered
	}
	m.order = slices.Clone(m.captures)
	slices.SortStableFunc(m.order, byNeed)
	m.close()
	moved, err := m.move()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFixedCaptures, err)
	}
	return renamed(t, moved)
}

// mover puts captures in another order.
type mover struct {
	*redirections
	captures []int   // indexes of redirections, as recorded
	order    []int   // the same in the new order
	units    [][]int // by redirection: indexes of the events of a capture
	with     []int   // by event: the capture that it moves with, stays or follows
}

// Values of mover.with.
const (
	stays   = -1
	follows = -2 // the begin before it, of whichever capture
)

// close ends a last capture that the trace leaves open, behind its last request and the events of
// its blocks that directly follow. So it has no more of the end of the program than those.
func (m *mover) close() {
	c := m.captures[len(m.captures)-1]
	r := &m.all[c]
	if r.end < len(m.events) {
		return
	}
	i := r.end
	for ; i > r.begin+1; i-- {
		if e := &m.events[i-1]; (e.Kind == Alloc || e.Kind == Refused) && r.serves(e.Stream) {
			break
		}
	}
	for i < len(m.events) && m.ofBlock(i, c) {
		i++
	}
	end := Event{Kind: PoolEnd, Arg: m.events[r.begin].Arg, Slot: NoSlot, Time: NoTime}
	m.events, r.end = slices.Insert(slices.Clone(m.events), i, end), i
}

// ofBlock reports whether an event is about a block that was requested in a capture.
func (m *mover) ofBlock(i, capture int) bool {
	e := &m.events[i]
	b, ok := m.blocks[e.Slot]
	return ok && b.redirection == capture && (e.Kind == Free || e.Kind == Completed || e.Kind == Use)
}

// collect finds the events of each capture.
func (m *mover) collect() error {
	m.units, m.with = make([][]int, len(m.all)), slices.Repeat([]int{stays}, len(m.events))
	for k, c := range m.captures {
		r := &m.all[c]
		head := true // releases for programs that begin the pool again for the same user
		for i := r.begin; i <= r.end; i++ {
			e := &m.events[i]
			switch {
			case head && e.Kind == PoolRelease:
				m.with[i] = follows
				continue
			case i == r.begin || i == r.end || slices.Contains(movable, e.Kind):
				m.with[i] = c
			default:
				return fmt.Errorf("event %d (%s) is inside one", i, e.Kind)
			}
			m.units[c] = append(m.units[c], i)
			head = i == r.begin
		}
		if k+1 == len(m.captures) {
			break // the rest may be the end of the program
		}
		for i := r.end + 1; i < m.all[m.captures[k+1]].begin; i++ {
			e := &m.events[i]
			switch {
			case m.ofBlock(i, c):
				m.with[i] = c
				m.units[c] = append(m.units[c], i)
			case slices.Contains(dividing, e.Kind):
				return fmt.Errorf("event %d (%s) is between two", i, e.Kind)
			}
		}
	}
	return nil
}

// movable are the kinds of events that may move with a capture: requests, events of blocks, and
// kinds without effect on other events.
var movable = []Kind{Alloc, Free, Completed, Use, Mark, Refused, Poll}

// dividing are the kinds of events that change later requests, so no capture moves across them.
var dividing = []Kind{Frontier, Fault, Conf, Pause, Resume}

// move returns the events in the new order. It fails if the events of a block would not stay in
// their order.
func (m *mover) move() ([]Event, error) {
	if err := m.collect(); err != nil {
		return nil, err
	}
	order := make([]int, 0, len(m.events))
	next := m.order
	for i, c := range m.with {
		switch {
		case c == stays:
			order = append(order, i)
		case c >= 0 && i == m.all[c].begin:
			unit := m.units[next[0]]
			order, next = append(order, unit[0]), next[1:]
			for i++; i < len(m.with) && m.with[i] == follows; i++ {
				order = append(order, i)
			}
			order = append(order, unit[1:]...)
		}
	}
	last := map[uint32]int{} // by slot
	moved := make([]Event, 0, len(order))
	for _, i := range order {
		e := m.events[i]
		if before := last[e.Slot]; e.Slot != NoSlot && before > i {
			return nil, fmt.Errorf("event %d (%s of %d) would come before event %d (%s)", before, m.events[before].Kind, e.ID,
				i, e.Kind)
		}
		last[e.Slot] = i
		if m.with[i] >= 0 {
			e.Time = NoTime
		}
		moved = append(moved, e)
	}
	return moved, nil
}

// primed returns a trace that requests the largest need of a redirection in its pool, and frees it
// at once, before the first request of a pool. Blocks get other names.
func primed(t *Trace) (*Trace, error) {
	r := redirectionsOf(t)
	best := slices.MaxFunc(append([]redirection{{}}, r.all...), func(a, b redirection) int {
		return cmp.Compare(a.need, b.need)
	})
	if best.need == 0 {
		return nil, errNoNeed
	}
	first := r.all[0].begin
	pool, slot := t.Events[first].Arg, uint32(t.Slots)
	events := slices.Concat(t.Events[:first], []Event{
		{Kind: PoolBegin, Arg: pool, Tag: t.Events[first].Tag, Stream: AllStreams, Slot: NoSlot, Time: NoTime},
		{Kind: Alloc, Size: best.need, Stream: best.needOn, Slot: slot, Time: NoTime},
		{Kind: Free, Slot: slot, Time: NoTime},
		{Kind: PoolEnd, Arg: pool, Slot: NoSlot, Time: NoTime},
		t.Events[first],
		{Kind: PoolRelease, Arg: pool, Slot: NoSlot, Time: NoTime}, // the user of the first begin has begun it again
	}, t.Events[first+1:])
	return renamed(t, events)
}

// renamed returns a trace with other events. Blocks are named by their slots, because a file may
// use a name again.
func renamed(t *Trace, events []Event) (*Trace, error) {
	b := NewBuilder(t.Header)
	for _, e := range events {
		e.Tag = b.Tag(t.TagOf(&e))
		if e.Slot != NoSlot {
			e.ID = uint64(e.Slot) + 1
		}
		if err := b.Add(e); err != nil {
			return nil, err
		}
	}
	return b.Trace(), nil
}
