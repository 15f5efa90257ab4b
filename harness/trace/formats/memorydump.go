package formats

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// dumpFormat is the state of a TensorFlow allocator.
var dumpFormat = Format{
	Name:      "memorydump",
	Framework: "TensorFlow",
	Doc:       "TensorFlow's MemoryDump (protobuf): the state of a BFC allocator, without history",
	Absent:    "everything but what was live when the file was written: no order, no frees, no streams, no times",
	Recognize: isDump,
	Read:      readDump,
}

// isDump reports whether a file begins with field 1, the allocator's name, and then a message in
// field 2 or 3.
func isDump(head []byte) bool {
	name, rest, ok := firstField(head)
	if !ok || len(name) == 0 || len(rest) == 0 || rest[0] != 0x12 && rest[0] != 0x1a {
		return false
	}
	return bytes.IndexFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// firstField returns the bytes of field 1, if a message begins with it, and the rest. A field
// longer than head is cut off.
func firstField(head []byte) (field, rest []byte, ok bool) {
	number, wire, n, err := wireTag(head)
	if err != nil || number != 1 || wire != protowire.BytesType {
		return nil, nil, false
	}
	length, size := protowire.ConsumeVarint(head[n:])
	if size < 0 {
		return nil, nil, false
	}
	body := head[n+size:]
	end := int(min(length, uint64(len(body))))
	return body[:end], body[end:], true
}

// dumpChunk is a chunk of the allocator.
type dumpChunk struct {
	addr, size, requested uint64
	op                    string
	inUse                 bool
}

// dumpReader collects a dump.
type dumpReader struct {
	in        *Input
	allocator string
	chunks    []dumpChunk
	peak      uint64            // most bytes in use
	ops       map[string]string // names of operations, each once
}

// statPeak is the number of the field with the most bytes in use.
const statPeak = 3

// readDump reads a dump. The chunks in use become allocations live at the start, by address.
func readDump(in *Input) (*trace.Trace, error) {
	r := &dumpReader{in: in, ops: map[string]string{}}
	err := in.fields(func(m *message) error {
		switch m.field {
		case 1:
			var err error
			r.allocator, err = m.text()
			return err
		case 3:
			return r.chunk(m.sub())
		case 5:
			s := m.sub()
			return s.each(in, func() error {
				if s.field == statPeak {
					r.peak = s.number
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.trace(in.header("memorydump"))
}

// chunk reads a chunk.
func (r *dumpReader) chunk(m *message) error {
	var c dumpChunk
	err := m.each(r.in, func() error {
		switch m.field {
		case 1:
			c.addr = m.number
		case 2:
			c.size = m.number
		case 3:
			c.requested = m.number
		case 5:
			name, err := m.text()
			if err == nil {
				c.op, err = r.op(name)
			}
			return err
		case 8:
			c.inUse = m.number != 0
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch _, carry := bits.Add64(c.addr, c.size, 0); {
	case c.size == 0 || c.size > 1<<63:
		return fmt.Errorf("chunk of %d bytes at %#x", int64(c.size), c.addr)
	case carry != 0:
		return fmt.Errorf("chunk of %d bytes at %#x ends beyond the address space", c.size, c.addr)
	case c.requested > c.size:
		return fmt.Errorf("chunk of %d bytes at %#x holds a request of %d", c.size, c.addr, int64(c.requested))
	case c.requested == 0:
		c.requested = c.size
	}
	r.chunks, err = budget.Append(r.in.budget, r.chunks, c)
	return err
}

// op returns the first copy of an operation's name, so that each is stored once.
func (r *dumpReader) op(name string) (string, error) {
	if first, ok := r.ops[name]; ok {
		return first, nil
	}
	if err := r.in.budget.Take(int64(len(name))); err != nil {
		return "", err
	}
	return name, budget.Put(r.in.budget, r.ops, name, name)
}

// trace builds the trace. Its header describes the allocator's memory.
func (r *dumpReader) trace(h trace.Header) (*trace.Trace, error) {
	if len(r.chunks) == 0 {
		return nil, errors.New("has no chunks")
	}
	slices.SortFunc(r.chunks, func(a, b dumpChunk) int { return cmp.Compare(a.addr, b.addr) })
	var reserved, free, largest, end uint64
	regions := 0
	for _, c := range r.chunks {
		if c.addr < end {
			return nil, fmt.Errorf("chunk at %#x overlaps the one below it", c.addr)
		}
		if regions == 0 || c.addr != end {
			regions++
		}
		end = c.addr + c.size
		reserved += c.size
		if !c.inUse {
			free += c.size
			largest = max(largest, c.size)
		}
	}
	h.Meta = append(h.Meta, trace.Pair{Key: "part", Value: r.allocator})
	for _, f := range []struct {
		key   string
		value uint64
	}{
		{"regions", uint64(regions)}, {"chunks", uint64(len(r.chunks))}, {"reserved_bytes", reserved},
		{"free_bytes", free}, {"largest_free_bytes", largest}, {"peak_bytes_in_use", r.peak},
	} {
		h.Meta = append(h.Meta, trace.Pair{Key: f.key, Value: strconv.FormatUint(f.value, 10)})
	}
	b := trace.NewBuilderWithin(r.in.budget, h)
	id := uint64(0)
	for _, c := range r.chunks {
		if !c.inUse {
			continue
		}
		e := trace.Event{Kind: trace.LiveAtStart, ID: id, Size: device.Size(c.requested), Tag: b.Tag(c.op),
			Time: trace.NoTime}
		if err := b.Add(e); err != nil {
			return nil, err
		}
		id++
	}
	return b.Trace(), nil
}
