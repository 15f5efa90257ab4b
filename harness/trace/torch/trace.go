package torch

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// traceMaker converts a timeline to a trace.
type traceMaker struct {
	*Timeline
	b     *trace.Builder
	sites []uint64     // hashes of stacks
	tags  []uint32     // by string of the file: its tag in the trace, or 0
	texts []string     // strings of the file
	marks []Annotation // annotations of this device that are not yet added, by time
	ends  []Ending     // unrecorded ends not yet added
	pools poolWriter
	count int   // events so far
	start int64 // time of the first event in microseconds; NoTime if no entry has one
	now   int64 // nanoseconds since start, or NoTime
	last  int64 // latest time of an entry in microseconds
}

// Trace returns the program's requests as a trace. s is the file of the timeline.
func (c *Timeline) Trace(s *Snapshot) (*trace.Trace, error) {
	sites, err := s.sites(nil)
	if err != nil {
		return nil, err
	}
	return c.trace(s, sites, nil)
}

// trace is [Timeline.Trace] with its memory charged to a budget.
func (c *Timeline) trace(s *Snapshot, sites []uint64, memory *budget.Budget) (*trace.Trace, error) {
	c.findEmptied(s.Settings)
	m := &traceMaker{
		Timeline: c, ends: c.Endings, texts: s.Strings, tags: make([]uint32, len(s.Strings)), sites: sites,
		start: NoTime, now: trace.NoTime, pools: newPoolWriter(c),
	}
	for i, step := range c.Steps {
		if step != None {
			if m.start = c.Device.History.At(i).Time; m.start != NoTime {
				break
			}
		}
	}
	m.b = trace.NewBuilderWithin(memory, trace.Header{Format: Format})
	for _, a := range s.Annotations {
		if a.Device == c.Device.Ordinal {
			m.marks = append(m.marks, a)
		}
	}
	slices.SortStableFunc(m.marks, func(a, b Annotation) int { return cmp.Compare(a.Time, b.Time) })
	if m.start == NoTime && len(m.marks) > 0 {
		c.Report.addFinding(markUnplaced, -1, 0)
		m.marks = nil
	}
	m.b.Grow(m.events())
	if err := m.addOpening(); err != nil {
		return nil, err
	}
	c.Events = make([]int, len(c.Steps)+1)
	for i, step := range c.Steps {
		e := c.Device.History.At(i)
		if err := m.advance(i, &e); err != nil {
			return nil, err
		}
		if step != None {
			if err := m.step(i, step, &e); err != nil {
				return nil, fmt.Errorf("entry %d: %w", i, err)
			}
			continue
		}
		if e.Action == ActionConf {
			tag := m.b.Tag(c.Device.History.Confs[e.Category])
			if err := m.add(trace.Event{Kind: trace.Conf, Tag: tag, Time: m.now}); err != nil {
				return nil, err
			}
		} else if err := m.passTraffic(i); err != nil {
			return nil, err
		}
		c.Events[i] = m.count
	}
	c.Events[len(c.Steps)] = m.count
	if err := m.addClosing(); err != nil {
		return nil, err
	}
	t := m.b.Trace()
	t.Header.Meta = c.meta(s, m.start) // after all findings are counted
	return t, nil
}

// events returns the number of events of the trace, without private pools.
func (m *traceMaker) events() int {
	n := len(m.Opening) + len(m.Endings) + len(m.Pending) + len(m.marks)
	for _, o := range m.Opening {
		if o.Pending {
			n++
		}
	}
	for _, step := range m.Steps {
		if step != None {
			n++
		}
	}
	return n
}

func (m *traceMaker) add(e trace.Event) error {
	m.count++
	return m.b.Add(e)
}

// addOpening adds the allocations that existed when the history began.
func (m *traceMaker) addOpening() error {
	var inPools []trace.Event
	for id, o := range m.Opening {
		e := trace.Event{
			Kind: trace.LiveAtStart, ID: uint64(id), Size: device.Size(o.Size), Stream: device.Stream(o.Stream),
			Site: m.sites[o.Stack], Time: trace.NoTime,
		}
		if m.Report.Requests > 0 && m.pools.at(o.Addr) != [2]uint64{} {
			e.Kind = trace.Alloc
			inPools = append(inPools, e)
			continue
		}
		if err := m.add(e); err != nil {
			return err
		}
	}
	for _, e := range inPools {
		if err := m.redirect(m.pools.at(m.Opening[e.ID].Addr), e.Stream); err != nil {
			return err
		}
		if err := m.add(e); err != nil {
			return err
		}
	}
	for id, o := range m.Opening {
		if !o.Pending {
			continue
		}
		if err := m.add(trace.Event{Kind: trace.Free, ID: uint64(id), Time: trace.NoTime}); err != nil {
			return err
		}
	}
	return nil
}

// advance moves the clock to an entry and adds the marks before it.
func (m *traceMaker) advance(i int, e *Entry) error {
	if e.Time == NoTime {
		return nil
	}
	if err := m.addMarksUntil(e.Time); err != nil {
		return err
	}
	if e.Time < m.last {
		m.Report.addFinding(timeBack, i, e.Addr)
	}
	m.last = max(m.last, e.Time)
	m.now = max(m.now, m.since(e.Time))
	return nil
}

// since returns the nanoseconds from the first event to a time, at least 0. It saturates at the
// maximum.
func (m *traceMaker) since(us int64) int64 {
	const most = 1<<63 - 1
	switch d := us - m.start; {
	case us <= m.start:
		return 0
	case d < 0 || d > most/1000:
		return most
	default:
		return d * 1000
	}
}

// addMarksUntil adds the marks up to a time, inclusive.
func (m *traceMaker) addMarksUntil(us int64) error {
	for len(m.marks) > 0 && m.marks[0].Time <= us {
		if err := m.addMark(m.marks[0]); err != nil {
			return err
		}
		m.marks = m.marks[1:]
	}
	return nil
}

func (m *traceMaker) addMark(a Annotation) error {
	text := m.texts[a.Name]
	if !a.Start {
		text += trace.EndSuffix
	}
	m.now = max(m.now, m.since(a.Time))
	return m.add(trace.Event{Kind: trace.Mark, Tag: m.b.Tag(text), Time: m.now})
}

// step adds the event of an entry.
func (m *traceMaker) step(i int, step Step, from *Entry) error {
	if step == Alloc {
		if err := m.addUnrecordedEnds(i); err != nil {
			return err
		}
	}
	if err := m.enterPool(step, from); err != nil {
		return err
	}
	m.Events[i] = m.count
	e := trace.Event{ID: uint64(m.IDs[i]), Time: m.now}
	switch step {
	case Alloc:
		e.Kind, e.Tag = trace.Alloc, m.tag(from.Category)
	case Free, FreeLater:
		e.Kind = trace.Free
	case Completed:
		e.Kind = trace.Completed
	case Refused:
		e.Kind, e.Tag = trace.Refused, m.b.Tag(trace.RoundedTag)
	}
	if step == Alloc || step == Refused {
		e.Size, e.Stream = device.Size(from.Size), device.Stream(m.Device.History.Streams[from.Stream])
		e.Site = m.sites[from.Stack]
	}
	return m.add(e)
}

// addUnrecordedEnds frees the allocations at the address of entry i's allocation: the history lacks
// their frees.
func (m *traceMaker) addUnrecordedEnds(i int) error {
	for len(m.ends) > 0 && m.ends[0].Entry == i {
		e := trace.Event{Kind: trace.Free, ID: uint64(m.ends[0].ID), Time: m.now}
		if m.ends[0].Pending {
			e.Kind = trace.Completed
		}
		if err := m.add(e); err != nil {
			return err
		}
		m.ends = m.ends[1:]
	}
	return nil
}

func (m *traceMaker) tag(text uint32) uint32 {
	if text == 0 {
		return 0
	}
	if m.tags[text] == 0 {
		m.tags[text] = m.b.Tag(m.texts[text])
	}
	return m.tags[text]
}

// addClosing adds the remaining marks and completes the pending frees.
func (m *traceMaker) addClosing() error {
	for _, a := range m.marks {
		if err := m.addMark(a); err != nil {
			return err
		}
	}
	for _, id := range m.Pending {
		if err := m.add(trace.Event{Kind: trace.Completed, ID: uint64(id), Time: m.now}); err != nil {
			return err
		}
	}
	return nil
}

func (c *Timeline) meta(s *Snapshot, start int64) []trace.Pair {
	r := c.Report
	meta := []trace.Pair{
		{Key: KeyConfig, Value: string(Config(s.Settings))},
		{Key: KeyStreams, Value: join(r.Streams, func(s int64) string { return strconv.FormatInt(s, 10) })},
		{Key: KeyOpening, Value: strconv.Itoa(len(c.Opening))},
		{Key: KeyPeak, Value: strconv.FormatUint(r.Peak, 10)},
	}
	add := func(key, value string) { meta = append(meta, trace.Pair{Key: key, Value: value}) }
	if r.Capacity > 0 {
		add(KeyCapacity, strconv.FormatUint(r.Capacity, 10))
	}
	if c.fallingSegments() {
		add(KeyOrder, OrderFalling)
	}
	if start != NoTime {
		add(KeyStarted, strconv.FormatInt(start, 10))
	}
	if len(r.Pools) > 0 {
		add(KeyPools, join(r.Pools, poolName)+poolWarning)
	}
	if r.Wrapped != "" {
		add(KeyWrapped, r.Wrapped)
	}
	for i := range r.Findings {
		add(KeyFinding, r.Findings[i].String())
	}
	for i := range r.Heaps {
		add(KeyHeap, r.Heaps[i].String())
	}
	return meta
}

// poolWarning is appended to the private pools of a program.
const poolWarning = ": a strategy without private pools reuses memory that such a pool keeps, so its savings there " +
	"are not real"

// poolName formats the id of a private pool.
func poolName(p [2]uint64) string { return fmt.Sprintf("%d.%d", p[0], p[1]) }

func join[T any](list []T, text func(T) string) string {
	var b strings.Builder
	for i, x := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text(x))
	}
	return b.String()
}
