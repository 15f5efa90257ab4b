package formats

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// xspaceFormat is the output of the profiler of TensorFlow and JAX.
var xspaceFormat = Format{
	Name: "xspace",
	Doc:  "the XSpace of the profiler of TensorFlow and JAX (protobuf, .xplane.pb): events of BFC allocators",
	Absent: "streams, requests that found no memory, what happened before the profiler was started, " +
		"sizes as requested of the blocks live at that time",
	Recognize: func(head []byte) bool {
		// Field 1 is a plane, which begins with its id or its name.
		plane, _, ok := firstField(head)
		return ok && len(plane) > 0 && (plane[0] == 0x08 || plane[0] == 0x12)
	},
	Read:  readXSpace,
	Parts: true,
}

// The names of memory events.
const (
	xAllocation   = "MemoryAllocation"
	xDeallocation = "MemoryDeallocation"
)

// The statistics that are read.
const (
	statAddr      = "addr"
	statAllocated = "bytes_allocated"
	statOwn       = "allocation_bytes"
	statRequested = "requested_bytes"
	statOp        = "tf_op"
	statAllocator = "allocator_name"
	statAvailable = "bytes_available"
	statReserved  = "bytes_reserved"
)

// xFrameworks are the beginnings of names of events that only one framework has. A program of JAX
// may read its data by TensorFlow, so JAX comes first.
var xFrameworks = []struct{ prefix, framework string }{
	{"PjitFunction(", "JAX"},
	{"EagerExecute", "TensorFlow"}, {"EagerLocalExecute", "TensorFlow"}, {"EagerKernelExecute", "TensorFlow"},
	{"ExecutorState::Process", "TensorFlow"}, {"FunctionRun", "TensorFlow"}, {"SessionRun", "TensorFlow"},
}

// xspaceReader collects the memory events of a file.
type xspaceReader struct {
	in    *Input
	texts texts
	parts logs
	calls map[*log][]xCall
	stats map[uint64]string // names of the current plane's statistics
	kinds map[uint64]string // names of the current plane's events
	named int64             // bytes of these names
	// first index in xFrameworks whose events the file has; its length for none
	framework int
}

// xCall is a call and the further data of its event.
type xCall struct {
	call
	picos     uint64 // beyond the nanoseconds in time
	allocated uint64 // bytes of the allocator after the event
	own       uint64 // bytes that the event adds or removes
	limit     uint64 // bytes that the allocator may hold; 0: unknown
}

// readXSpace reads a file. It skips planes without memory events.
func readXSpace(in *Input) (*trace.Trace, error) {
	r := &xspaceReader{
		in: in, calls: map[*log][]xCall{}, kinds: map[uint64]string{}, stats: map[uint64]string{},
		texts: texts{memory: in.budget}, parts: in.logs(), framework: len(xFrameworks),
	}
	err := in.fields(func(m *message) error {
		if m.field == 1 {
			return r.plane(m.sub())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range r.parts.list {
		if err := p.ordered(r.calls[p]); err != nil {
			return nil, err
		}
		budget.Release(in.budget, r.calls[p])
		delete(r.calls, p)
	}
	h := in.header("xspace")
	if r.framework < len(xFrameworks) {
		h.Meta = append(h.Meta, trace.Pair{Key: trace.FrameworkKey, Value: xFrameworks[r.framework].framework})
	}
	return r.parts.trace(in, h, &r.texts,
		errors.New("has no events MemoryAllocation and MemoryDeallocation"))
}

// plane reads a plane in two passes, because names follow their uses.
func (r *xspaceReader) plane(m *message) error {
	clear(r.kinds)
	clear(r.stats)
	r.in.budget.Give(r.named) // of the previous plane
	r.named = 0
	lines := *m
	err := m.each(r.in, func() error {
		switch m.field {
		case 4:
			return r.name(m.sub(), r.kinds)
		case 5:
			return r.name(m.sub(), r.stats)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return lines.each(r.in, func() error {
		if lines.field == 3 {
			return r.line(lines.sub())
		}
		return nil
	})
}

// name reads an entry of a table of names: its id as the key, and an object with the name.
func (r *xspaceReader) name(m *message, names map[uint64]string) error {
	var key uint64
	var name string
	err := m.each(r.in, func() error {
		switch m.field {
		case 1:
			key = m.number
		case 2:
			inner := m.sub()
			return inner.each(r.in, func() error {
				var err error
				if inner.field == 2 {
					name, err = inner.text()
				}
				return err
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	takes := budget.EntrySize[uint64, string]() + int64(len(name))
	if err := r.in.budget.Take(takes); err != nil {
		return err
	}
	r.named += takes
	names[key] = name
	for i, f := range xFrameworks[:r.framework] {
		if strings.HasPrefix(name, f.prefix) {
			r.framework = i
			break
		}
	}
	return nil
}

// line reads the events of a line in two passes, because its start time may follow them.
func (r *xspaceReader) line(m *message) error {
	var base int64
	events := *m
	err := m.each(r.in, func() error {
		if m.field == 3 {
			base = int64(m.number)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if base < 0 || base > math.MaxInt64/2 {
		return r.in.at(m.base, fmt.Errorf("time of %d ns", base))
	}
	return events.each(r.in, func() error {
		if events.field == 4 {
			return r.event(events.sub(), base)
		}
		return nil
	})
}

// event reads an event of a line that starts at base, in two passes: its statistics are needed only
// for some kinds.
func (r *xspaceReader) event(m *message, base int64) error {
	var kind string
	var offset uint64
	stats := *m
	err := m.each(r.in, func() error {
		switch m.field {
		case 1:
			kind = r.kinds[m.number]
		case 2:
			offset = m.number
		}
		return nil
	})
	if err != nil || kind != xAllocation && kind != xDeallocation {
		return err
	}
	if int64(offset) < 0 {
		return fmt.Errorf("offset of %d ps", int64(offset))
	}
	values := map[string]xValue{}
	err = stats.each(r.in, func() error {
		if stats.field == 4 {
			return r.stat(stats.sub(), values)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.add(kind, base+int64(offset/1000), offset%1000, values)
}

// xValue is the value of a statistic: a number or a text.
type xValue struct {
	number uint64
	text   string
}

func (r *xspaceReader) stat(m *message, values map[string]xValue) error {
	var name string
	var v xValue
	err := m.each(r.in, func() error {
		switch m.field {
		case 1:
			name = r.stats[m.number]
		case 3, 4: // unsigned, signed
			v.number = m.number
		case 5:
			var err error
			v.text, err = m.text()
			return err
		case 7: // a reference to a name
			v.text = r.stats[m.number]
		}
		return nil
	})
	switch name {
	case statAddr, statAllocated, statOwn, statRequested, statOp, statAllocator, statAvailable, statReserved:
		values[name] = v
	}
	return err
}

func (r *xspaceReader) add(kind string, now int64, picos uint64, values map[string]xValue) error {
	c := xCall{picos: picos, allocated: values[statAllocated].number, own: values[statOwn].number}
	c.kind, c.time, c.addr = trace.Alloc, now, values[statAddr].number
	c.size = values[statRequested].number
	if c.size == 0 {
		c.size = c.own
	}
	if kind == xDeallocation {
		c.kind, c.size = trace.Free, c.own
	}
	if int64(c.size) < 0 || int64(c.own) < 0 || int64(c.allocated) < 0 {
		return errors.New("negative number of bytes")
	}
	if available, ok := values[statAvailable]; ok {
		c.limit = available.number + values[statReserved].number + c.allocated
	}
	var err error
	if op := values[statOp].text; c.kind == trace.Alloc {
		if c.tag, err = r.texts.index(op); err != nil {
			return err
		}
	}
	name := values[statAllocator].text
	if name == "" {
		return errors.New("an event about memory without allocator_name")
	}
	lower := strings.ToLower(name)
	p, err := r.parts.part(name, strings.Contains(lower, "cpu") || strings.Contains(lower, "host"))
	if err != nil {
		return err
	}
	r.calls[p], err = budget.Append(r.in.budget, r.calls[p], c)
	return err
}

// ordered replays the calls in the order of their times, and derives the memory that was live
// throughout without a call: the allocator's memory before the first call, minus the frees without
// an allocation.
func (p *log) ordered(calls []xCall) error {
	slices.SortStableFunc(calls, func(a, b xCall) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.picos, b.picos))
	})
	var opening uint64
	seen := map[uint64]bool{}
	defer func() { p.memory.Give(int64(len(seen)) * budget.EntrySize[uint64, bool]()) }()
	for i := range calls {
		c := &calls[i]
		if i == 0 {
			p.limit = c.limit
			p.unseen = c.allocated + c.own
			if c.kind == trace.Alloc {
				p.unseen = c.allocated - min(c.own, c.allocated)
			}
		}
		if c.limit != p.limit { // the allocator's limit grew, or an event lacks it
			p.limit = 0
		}
		switch {
		case c.kind == trace.Free && seen[c.addr]:
			c.size = 0 // rounded, so it cannot be compared with the requested size
		case c.kind == trace.Free:
			opening += c.own
		}
		if err := budget.Put(p.memory, seen, c.addr, true); err != nil {
			return err
		}
		if err := p.add(&c.call); err != nil {
			return err
		}
	}
	p.unseen -= min(p.unseen, opening)
	return nil
}
