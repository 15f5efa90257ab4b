package streampool

import "github.com/vramyard/vramyard/device"

// markID is the index of a mark.
type markID = uint32

// noMark is the mark of unowned chunks.
const noMark markID = 0

// mark is a point in a stream: the end of the work that was queued when the mark was recorded.
type mark struct {
	event device.Event // 0: not recorded yet
	turn  uint64       // number of marks recorded before it; the largest value if not recorded
	group uint32
	refs  int32 // reference count; 0: spare
	done  bool
	next  markID // spare: next spare mark
}

// marks holds the marks and the events that they recycle.
type marks struct {
	rows    []mark // rows[0] is unused
	spare   markID
	turn    uint64         // number of recorded marks
	events  []device.Event // spare
	created int            // number of events created
}

func newMarks() marks { return marks{rows: make([]mark, 1)} }

func (m *marks) hold(id markID) {
	if id != noMark {
		m.rows[id].refs++
	}
}

// drop releases a hold. After the last one the event is spare.
func (m *marks) drop(id markID) {
	if id == noMark {
		return
	}
	w := &m.rows[id]
	if w.refs--; w.refs > 0 {
		return
	}
	if w.event != 0 {
		m.events = append(m.events, w.event)
	}
	*w = mark{next: m.spare}
	m.spare = id
}

// later reports whether mark a was recorded after mark b of the same stream.
func (m *marks) later(a, b markID) bool {
	return m.rows[a].turn > m.rows[b].turn
}

// newMark returns a mark after the work that is queued now on the stream of a group, held once.
func (p *Pool) newMark(g uint32) markID {
	m := &p.marks
	id := m.spare
	if id == noMark {
		id = markID(len(m.rows))
		m.rows = append(m.rows, mark{})
	} else {
		m.spare = m.rows[id].next
	}
	m.rows[id] = mark{group: g, refs: 1, turn: ^uint64(0)}
	_ = p.record(id) // retried by passed and wait
	return id
}

// record records a mark that is not recorded yet.
func (p *Pool) record(id markID) error {
	m := &p.marks
	w := &m.rows[id]
	if w.event != 0 {
		return nil
	}
	last := len(m.events) - 1
	if last < 0 {
		e, err := p.streams.NewEvent()
		if err != nil {
			return err
		}
		m.events = append(m.events, e)
		m.created++
		last = 0
	}
	e := m.events[last]
	if err := p.streams.Record(e, p.groups[w.group].stream); err != nil {
		return err
	}
	m.events = m.events[:last]
	w.event, w.turn = e, m.turn
	m.turn++
	return nil
}

// passed reports whether a mark is done. An unrecorded mark is not.
func (p *Pool) passed(id markID) (bool, error) {
	w := &p.marks.rows[id]
	if w.done {
		return true, nil
	}
	if err := p.record(id); err != nil {
		return false, err
	}
	done, err := p.streams.Done(w.event)
	w.done = done && err == nil
	return w.done, err
}

// ordered reports whether new work on a stream runs after a mark.
func (p *Pool) ordered(id markID, s device.Stream) bool {
	w := &p.marks.rows[id]
	if w.event == 0 {
		return false
	}
	after, err := p.timeline.Ordered(w.event, s)
	return after && err == nil
}

func (p *Pool) wait(id markID, s device.Stream) bool {
	if p.record(id) != nil {
		return false
	}
	if p.streams.Wait(s, p.marks.rows[id].event) != nil {
		return false
	}
	p.stats.Waits++
	return true
}

// destroyEvents destroys the spare events. It returns the first error of the device and keeps the
// events that the device did not destroy.
func (p *Pool) destroyEvents() (first error) {
	kept := p.marks.events[:0]
	for _, e := range p.marks.events {
		if err := p.streams.DestroyEvent(e); err != nil {
			kept = append(kept, e)
			if first == nil {
				first = err
			}
			continue
		}
		p.marks.created--
	}
	p.marks.events = kept
	return first
}
