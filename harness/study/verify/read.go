package verify

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// header is the first line of a file of addresses.
const header = "what,seq,address,bytes"

// beyond is an exclusive bound of sizes: PyTorch rejects such requests at once.
const beyond = 1 << 60

// preexisting is the tag prefix of allocations that were live at the start.
const preexisting = "preexisting"

var (
	errHeader  = errors.New("want the header line " + header)
	errColumns = errors.New("want 4 columns: " + header)
)

// stepBytes is the memory of a step in a growing history.
const stepBytes = 160

// row is a line of an address file.
type row struct {
	kind    Kind
	initial bool // a segment at the start; kind and seq are unset
	seq     uint64
	addr    device.Addr
	size    device.Size
	line    int // line number
}

// Read reads the history formed by a trace and its address file. Errors in the file are
// [*trace.Error] with the line.
func Read(t *trace.Trace, addresses *trace.Lines) (*History, error) {
	rows, err := readRows(addresses)
	if err != nil {
		return nil, err
	}
	events, total, err := requests(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Header.Name, err)
	}
	m := merger{
		lines: addresses, rows: rows, events: events, total: total, layout: &layout{}, held: map[device.Addr]int{},
		h: &History{Name: t.Header.Name, Hash: t.Header.Hash, Addr: addresses.Hash()},
	}
	for _, take := range []func() error{m.segments, m.opening, m.steps} {
		if err := take(); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(m.h.Steps, func(s Step) bool { return s.Kind == Alloc }) {
		return nil, fmt.Errorf("%s: no allocation was made while the recording ran", t.Header.Name)
	}
	return m.h, nil
}

func readRows(lines *trace.Lines) ([]row, error) {
	var rows []row
	last, started := row{}, false
	for {
		line, err := lines.Next()
		if err != nil {
			return nil, err
		}
		switch {
		case line == nil && !started:
			return nil, lines.ErrorAt(lines.Line(), errHeader)
		case line == nil:
			return rows, nil
		case !started:
			if string(line) != header {
				return nil, lines.ErrorAt(lines.Line(), errHeader)
			}
			started = true
			continue
		}
		r, err := parseRow(line)
		if err == nil && !r.initial {
			err = r.follows(last)
			last = r
		}
		if err == nil {
			r.line = lines.Line()
			rows, err = budget.Append(lines.Memory(), rows, r)
		}
		if err == nil {
			err = lines.Memory().Take(stepBytes)
		}
		if err != nil {
			return nil, lines.ErrorAt(lines.Line(), err)
		}
	}
}

// follows returns an error if a row must not follow last; a last row without bytes is ignored.
func (r row) follows(last row) error {
	switch {
	case r.seq < last.seq, r.seq == last.seq && last.kind == Alloc && last.size != 0:
		return fmt.Errorf("seq %d after %s of seq %d", r.seq, last.kind, last.seq)
	case last.kind == SegmentAlloc && (r.kind != Alloc || r.seq != last.seq):
		return fmt.Errorf("want the row of allocation %d, which its segment precedes", last.seq)
	}
	return nil
}

func parseRow(line []byte) (row, error) {
	if bytes.Count(line, []byte(",")) != strings.Count(header, ",") { // checked before cells are allocated
		return row{}, errColumns
	}
	cells := bytes.Split(line, []byte(","))
	var r row
	switch what := string(cells[0]); what {
	case "alloc":
		r.kind = Alloc
	case "segment_alloc":
		r.kind = SegmentAlloc
	case "segment_free":
		r.kind = SegmentFree
	case "initial_segment":
		r.initial = true
	default:
		return row{}, fmt.Errorf("what %.40q: want alloc, initial_segment, segment_alloc or segment_free", what)
	}
	seq, errSeq := strconv.ParseUint(string(cells[1]), 10, 64)
	addr, errAddr := strconv.ParseUint(string(cells[2]), 10, 64)
	size, errSize := strconv.ParseUint(string(cells[3]), 10, 64)
	switch {
	case r.initial && len(cells[1]) > 0:
		return row{}, fmt.Errorf("seq %.40q: want no seq for an initial_segment", cells[1])
	case !r.initial && errSeq != nil:
		return row{}, fmt.Errorf("seq %.40q: want a number", cells[1])
	case errAddr != nil || addr == 0:
		return row{}, fmt.Errorf("address %.40q: want a number above 0", cells[2])
	case errSize != nil || size == 0 || size >= beyond:
		return row{}, fmt.Errorf("bytes %.40q: want a number above 0 and below 2^60", cells[3])
	case addr+size < addr:
		return row{}, fmt.Errorf("bytes %d: the range ends beyond 64 bits", size)
	}
	r.seq, r.addr, r.size = seq, device.Addr(addr), device.Size(size)
	return r, nil
}

// request is an event of the trace.
type request struct {
	*trace.Event
	seq     int  // index of the event, without marks
	opening bool // live at the start
	free    bool // a completed free; otherwise an allocation
}

// requests returns the allocations and completed frees of a trace, and the number of its events,
// without marks.
func requests(t *trace.Trace) (list []request, total int, err error) {
	late := make([]bool, t.Slots) // by slot: the free completes later
	for i := range t.Events {
		if e := &t.Events[i]; e.Kind == trace.Completed {
			late[e.Slot] = true
		}
	}
	seq, started := -1, false
	for i := range t.Events {
		e := &t.Events[i]
		r := request{Event: e, opening: opening(t, e)}
		if e.Kind != trace.Mark {
			seq++
			started = started || !r.opening
		}
		r.seq = seq
		switch e.Kind {
		case trace.Alloc, trace.LiveAtStart:
			switch {
			case r.opening && started:
				return nil, 0, fmt.Errorf("event %d: allocation %d was live when the recording began, but follows its "+
					"beginning", seq, e.ID)
			case e.Size == 0:
				return nil, 0, fmt.Errorf("event %d: an allocation of 0 bytes has no address", seq)
			}
		case trace.Free, trace.Completed:
			if r.free = true; e.Kind == trace.Free && late[e.Slot] {
				continue
			}
		case trace.Mark, trace.Use, trace.Trim, trace.Drain, trace.Poll, trace.Refused, trace.ClearStats, trace.Print:
			continue // no effect on placement beyond the addresses
		default:
			return nil, 0, fmt.Errorf("event %d: %v events cannot be verified", seq, e.Kind)
		}
		list = append(list, r)
	}
	return list, seq + 1, nil
}

// opening reports whether an event is an allocation live at the start.
func opening(t *trace.Trace, e *trace.Event) bool {
	category, _, _ := strings.Cut(t.TagOf(e), ":")
	return e.Kind == trace.LiveAtStart || e.Kind == trace.Alloc && category == preexisting
}

// merger merges the rows of an address file with the events of a trace.
type merger struct {
	lines  *trace.Lines
	rows   []row     // remaining
	events []request // remaining
	total  int       // events of the trace, without marks
	h      *History
	layout *layout
	held   map[device.Addr]int // opening segments not yet released: index in h
	addrs  []device.Addr       // by slot: address of the block
}

func (m *merger) errorAt(r row, format string, args ...any) error {
	return m.lines.ErrorAt(r.line, fmt.Errorf(format, args...))
}

func (m *merger) segments() error {
	var rest []row
	for _, r := range m.rows {
		if !r.initial {
			rest = append(rest, r)
			continue
		}
		s := Segment{Region: device.Region{Addr: r.addr, Size: r.size}}
		if err := m.layout.addSegment(s); err != nil {
			return m.errorAt(r, "%w", err)
		}
		m.h.Segments = append(m.h.Segments, s)
	}
	slices.SortFunc(m.h.Segments, func(a, b Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	for i, s := range m.h.Segments {
		m.held[s.Addr] = i
	}
	m.rows = rest
	return nil
}

// opening adds the blocks live at the start.
func (m *merger) opening() error {
	streams := map[device.Addr]device.Stream{}
	for len(m.events) > 0 && m.events[0].opening {
		e := m.events[0]
		r, err := m.placeOf(e)
		if err != nil {
			return err
		}
		b := Block{ID: e.ID, Addr: r.addr, Requested: r.size}
		if err := m.layout.addOpening(b); err != nil {
			return m.errorAt(r, "%w", err)
		}
		s := m.segmentOf(r.addr)
		if was, ok := streams[s]; ok && was != e.Stream {
			return m.errorAt(r, "allocation %d of stream %d: the segment at %v is of stream %d", e.ID, e.Stream, s, was)
		}
		streams[s] = e.Stream
		m.h.Segments[m.held[s]].Stream = e.Stream
		m.h.Blocks = append(m.h.Blocks, b)
		m.events = m.events[1:]
	}
	slices.SortFunc(m.h.Blocks, func(a, b Block) int { return cmp.Compare(a.Addr, b.Addr) })
	return nil
}

func (m *merger) segmentOf(a device.Addr) device.Addr {
	p, _ := m.layout.segments.Floor(a)
	return m.layout.segments.Entry(p).Addr
}

// placeOf returns the row of an allocation, which must be next.
func (m *merger) placeOf(e request) (row, error) {
	if len(m.rows) == 0 {
		err := fmt.Errorf("the file ends before the row of allocation %d, event %d", e.ID, e.seq)
		return row{}, m.lines.ErrorAt(m.lines.Line(), err)
	}
	r := m.rows[0]
	switch {
	case r.kind != Alloc || r.seq != uint64(e.seq):
		return row{}, m.errorAt(r, "%s of seq %d: want the row of allocation %d, event %d", r.kind, r.seq, e.ID, e.seq)
	case r.size != e.Size:
		return row{}, m.errorAt(r, "bytes %d: the trace has %d", uint64(r.size), uint64(e.Size))
	}
	m.rows = m.rows[1:]
	for len(m.addrs) <= int(e.Slot) {
		m.addrs = append(m.addrs, 0)
	}
	m.addrs[e.Slot] = r.addr
	return r, nil
}

func (m *merger) steps() error {
	for _, e := range m.events {
		if err := m.traffic(e.seq, !e.free); err != nil {
			return err
		}
		if e.free {
			// A free refers to a live allocation, whose address is known.
			if err := m.add(Step{Kind: Free, Event: e.seq, ID: e.ID, Addr: m.addrs[e.Slot]}); err != nil {
				return err
			}
			continue
		}
		r, err := m.placeOf(e)
		if err != nil {
			return err
		}
		if err := m.add(Step{Kind: Alloc, Event: e.seq, ID: e.ID, Addr: r.addr, Size: r.size, Stream: e.Stream}); err != nil {
			return m.errorAt(r, "%w", err)
		}
		if i, ok := m.held[m.segmentOf(r.addr)]; ok {
			m.h.Segments[i].Stream = e.Stream
		}
	}
	if err := m.traffic(m.total, false); err != nil || len(m.rows) == 0 {
		return err
	}
	return m.errorAt(m.rows[0], "%s of seq %d: the trace has %d events", m.rows[0].kind, m.rows[0].seq, m.total)
}

// traffic adds the segments reserved and released before an event.
func (m *merger) traffic(seq int, isAlloc bool) error {
	for len(m.rows) > 0 && m.rows[0].kind != Alloc && m.rows[0].seq <= uint64(seq) {
		r := m.rows[0]
		if r.kind == SegmentAlloc && (!isAlloc || r.seq != uint64(seq)) {
			return m.errorAt(r, "segment_alloc of seq %d: the event is not an allocation", r.seq)
		}
		if err := m.add(Step{Kind: r.kind, Event: seq, Addr: r.addr, Size: r.size}); err != nil {
			return m.errorAt(r, "%w", err)
		}
		if r.kind == SegmentFree {
			delete(m.held, r.addr)
		}
		m.rows = m.rows[1:]
	}
	return nil
}

func (m *merger) add(s Step) error {
	m.h.Steps = append(m.h.Steps, s)
	return m.layout.apply(s, 0)
}
