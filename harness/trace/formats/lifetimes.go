package formats

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// lifetimes assigns a number to every lifetime of a block at an address, call by call, and keeps
// the events packed: a log of a million lines takes about 10 MB, the events of its trace 80 MB. The
// events cannot be built at once, because the blocks live at the start precede them and are
// complete only at the end.
type lifetimes struct {
	memory *budget.Budget
	calls  int
	packed []byte // the events, as encoded by put
	events int
	at     map[uint64]resident // current lifetime, by address
	// openings are the lifetimes that began before the log, in the order of their ends.
	openings []opening
	births   int   // number of lifetimes that begin in the log
	first    int64 // time of the first call
	now      int64 // latest time, relative to the first call
	lastTime int64 // time of the last event

	doubts [numDoubts]doubt
	spans  *trace.Spans // live blocks; nil: addresses are not compared
}

// doubt counts the calls that are inconsistent in one way.
type doubt struct{ count, call, line int } // call and line of the first; line may be 0

// The kinds of inconsistent calls.
const (
	lostFree  = iota // allocations at the address of a live block
	lostAlloc        // frees of an address that is already free
	disagree         // frees with another size than the allocation
	unsized          // frees of unknown blocks without a size, which are left out
	clamped          // times before the latest one
	overlaps         // allocations that overlap a live block at another address
	numDoubts
)

// doubtNames has the check and the description of each kind.
var doubtNames = [numDoubts][2]string{
	lostFree:  {"ghost", "allocations at the address of a live block, which is assumed to be freed"},
	lostAlloc: {"ghost", "frees of a block that is freed already, left out"},
	disagree:  {"balance", "frees of another size than the allocation"},
	unsized:   {"ghost", "frees of unknown blocks without a size, left out"},
	clamped:   {"time", "decreasing times, raised to the latest one"},
	overlaps:  {"overlap", "allocations that overlap a live block"},
}

// doubt counts the current call.
func (b *lifetimes) doubt(kind int, c *call) {
	d := &b.doubts[kind]
	if d.count++; d.count == 1 {
		d.call, d.line = b.calls, c.line
	}
}

// report passes the inconsistent calls to Options.Doubt.
func (p *log) report(in *Input) {
	if in.Doubt == nil {
		return
	}
	for kind, d := range p.doubts {
		if d.count > 0 {
			err := fmt.Errorf("%d %s; the first is call %d", d.count, doubtNames[kind][1], d.call)
			in.Doubt(doubtNames[kind][0], &trace.Error{File: in.Name, Line: d.line, Err: err})
		}
	}
	if p.lost > 0 {
		err := fmt.Errorf("%d calls are missing, by the running totals", p.lost)
		in.Doubt("balance", &trace.Error{File: in.Name, Err: err})
	}
}

// resident is the lifetime at an address.
type resident struct {
	lifetime uint64 // number of the lifetime; noLifetime if the address is free
	size     uint64
}

// noLifetime marks a free address. Opening n has the number 2n+1, birth n has 2n+2, from n = 0.
const noLifetime uint64 = 0

// opening is a lifetime that began before the log.
type opening struct {
	addr, size uint64
	stream     device.Stream
}

func (b *lifetimes) add(c *call) error {
	if b.calls == 0 {
		b.at, b.first = map[uint64]resident{}, c.time
	}
	b.calls++
	if t := c.time - b.first; t < b.now {
		b.doubt(clamped, c)
	} else {
		b.now = t
	}
	switch c.kind {
	case trace.Alloc:
		if old := b.at[c.addr]; old.lifetime != noLifetime {
			b.doubt(lostFree, c)
			b.ended(c)
			if err := b.put(trace.Free, old.lifetime); err != nil {
				return err
			}
		}
		if b.spans != nil && b.spans.Begin(c.addr, c.size) {
			b.doubt(overlaps, c)
		}
		b.births++
		if err := budget.Put(b.memory, b.at, c.addr, resident{2 * uint64(b.births), c.size}); err != nil {
			return err
		}
		return b.put(c.kind, c.size, uint64(c.stream), uint64(c.thread), uint64(c.tag))
	case trace.Free:
		lifetime, err := b.end(c)
		if err != nil || lifetime == noLifetime {
			return err
		}
		return b.put(c.kind, lifetime)
	case trace.Refused:
		return b.put(c.kind, c.size, uint64(c.stream), uint64(c.thread), uint64(c.tag))
	}
	return b.put(c.kind, uint64(c.tag))
}

// end returns the lifetime that a free ends, or noLifetime if it is unknown.
func (b *lifetimes) end(c *call) (lifetime uint64, err error) {
	b.ended(c)
	old, ok := b.at[c.addr]
	switch {
	case !ok && c.size == 0:
		b.doubt(unsized, c)
	case !ok:
		if b.openings, err = budget.Append(b.memory, b.openings, opening{c.addr, c.size, c.stream}); err != nil {
			return noLifetime, err
		}
		old.lifetime = 2*uint64(len(b.openings)) - 1
	case old.lifetime == noLifetime:
		b.doubt(lostAlloc, c)
	case c.size != 0 && c.size != old.size:
		b.doubt(disagree, c)
	}
	return old.lifetime, budget.Put(b.memory, b.at, c.addr, resident{lifetime: noLifetime})
}

// ended ends the span of a block.
func (b *lifetimes) ended(c *call) {
	if b.spans != nil {
		b.spans.End(c.addr)
	}
}

// put encodes an event: its kind, the time since the previous one, and its numbers.
func (b *lifetimes) put(kind trace.Kind, numbers ...uint64) (err error) {
	if b.packed, err = budget.Grow(b.memory, b.packed, 1+(1+len(numbers))*binary.MaxVarintLen64); err != nil {
		return err
	}
	b.events++
	b.packed = append(b.packed, byte(kind))
	b.packed = binary.AppendUvarint(b.packed, uint64(b.now-b.lastTime))
	b.lastTime = b.now
	for _, n := range numbers {
		b.packed = binary.AppendUvarint(b.packed, n)
	}
	return nil
}

// trace builds the trace with header h.
func (p *log) trace(h trace.Header, x *texts) (*trace.Trace, error) {
	for _, f := range []struct {
		key string
		n   int
	}{
		{"live_at_start_unmentioned_bytes", int(min(p.unseen, 1<<62))},
		{"frees_lost", p.doubts[lostFree].count}, {"allocations_lost", p.doubts[lostAlloc].count}, {"lines_lost", p.lost},
		{"frees_of_unknown_size_left_out", p.doubts[unsized].count}, {"free_sizes_that_disagree", p.doubts[disagree].count},
		{"times_that_went_back", p.doubts[clamped].count},
	} {
		if f.n > 0 {
			h.Meta = append(h.Meta, trace.Pair{Key: f.key, Value: strconv.Itoa(f.n)})
		}
	}
	p.memory.Give(int64(len(p.at)) * budget.EntrySize[uint64, resident]())
	p.at = nil // no longer needed, and as large as the events
	b := trace.NewBuilderWithin(p.memory, h)
	b.Grow(len(p.openings) + 1 + p.events)
	ids, err := p.open(b)
	if err != nil {
		return nil, err
	}
	if err := p.unpack(b, ids, x); err != nil {
		return nil, err
	}
	return b.Trace(), nil
}

// open adds the blocks live at the start, by stream and address, and the memory that no call
// mentions. It returns the ids of the openings.
func (p *log) open(b *trace.Builder) (ids []uint64, err error) {
	if err := p.memory.Take(budget.SizeOf[int](2 * len(p.openings))); err != nil {
		return nil, err
	}
	order := make([]int, len(p.openings))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int {
		x, y := &p.openings[i], &p.openings[k]
		return cmp.Or(cmp.Compare(x.stream, y.stream), cmp.Compare(x.addr, y.addr))
	})
	ids = make([]uint64, len(order))
	for id, i := range order {
		ids[i] = uint64(id)
		o := &p.openings[i]
		e := trace.Event{Kind: trace.LiveAtStart, ID: uint64(id), Size: device.Size(o.size), Stream: o.stream,
			Time: trace.NoTime}
		if err := b.Add(e); err != nil {
			return nil, err
		}
	}
	if p.unseen == 0 {
		return ids, nil
	}
	return ids, b.Add(trace.Event{
		Kind: trace.LiveAtStart, ID: uint64(len(ids) + p.births), Size: device.Size(p.unseen), Tag: b.Tag("never mentioned"),
		Time: trace.NoTime,
	})
}

// unpack adds the events. Births have the ids after the openings.
func (p *log) unpack(b *trace.Builder, ids []uint64, x *texts) error {
	next := uint64(len(ids))
	at := 0
	number := func() uint64 {
		n, size := binary.Uvarint(p.packed[at:])
		at += size
		return n
	}
	var now int64
	for range p.events {
		e := trace.Event{Kind: trace.Kind(p.packed[at])}
		at++
		now += int64(number())
		e.Time = now
		tag := uint64(0)
		switch e.Kind {
		case trace.Alloc, trace.Refused:
			e.Size, e.Stream, e.Thread, tag = device.Size(number()), device.Stream(number()), uint32(number()), number()
		case trace.Free:
			if lifetime := number(); lifetime%2 == 1 {
				e.ID = ids[lifetime/2]
			} else {
				e.ID = uint64(len(ids)) + lifetime/2 - 1
			}
		default:
			tag = number()
		}
		if e.Kind == trace.Alloc {
			e.ID = next
			next++
		}
		if tag != 0 {
			e.Tag = b.Tag(x.list[tag])
		}
		if err := b.Add(e); err != nil {
			return err
		}
	}
	return nil
}
