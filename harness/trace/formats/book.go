package formats

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// book gives every stay of a block at an address a name, call by call, and keeps the events packed:
// a log of a million lines takes some 10 MB here, and the events of its trace 80. They cannot be
// events at once, because what was live at the start stands in front of them and is known at the
// end.
type book struct {
	memory *budget.Budget
	calls  int
	packed []byte // the events; see add
	events int
	at     map[uint64]resident // by address
	// openings are the stays that began before the log, in the order in which they end.
	openings []opening
	births   int   // stays that begin in the log
	first    int64 // time of the first call
	now      int64 // latest time, counted from the first call
	told     int64 // time of the last event

	lostFrees, lostAllocs, disagree, unsized, clamped int
}

// resident is who is at an address.
type resident struct {
	stay uint64 // name of the stay; nobody if there was one and is none
	size uint64
}

// nobody is no stay. The n-th opening is called 2n+1, the n-th birth 2n+2.
const nobody uint64 = 0

// opening is a stay that began before the log.
type opening struct {
	addr, size uint64
	stream     device.Stream
}

func (b *book) add(c *call) error {
	if b.calls == 0 {
		b.at, b.first = map[uint64]resident{}, c.time
	}
	b.calls++
	if t := c.time - b.first; t < b.now {
		b.clamped++
	} else {
		b.now = t
	}
	switch c.kind {
	case trace.Alloc:
		if old := b.at[c.addr]; old.stay != nobody {
			b.lostFrees++
			if err := b.put(trace.Free, old.stay); err != nil {
				return err
			}
		}
		b.births++
		if err := budget.Put(b.memory, b.at, c.addr, resident{2 * uint64(b.births), c.size}); err != nil {
			return err
		}
		return b.put(c.kind, c.size, uint64(c.stream), uint64(c.thread), uint64(c.tag))
	case trace.Free:
		stay, err := b.end(c)
		if err != nil || stay == nobody {
			return err
		}
		return b.put(c.kind, stay)
	case trace.Refused:
		return b.put(c.kind, c.size, uint64(c.stream), uint64(c.thread), uint64(c.tag))
	}
	return b.put(c.kind, uint64(c.tag))
}

// end returns the stay that a free ends, nobody if none is known.
func (b *book) end(c *call) (stay uint64, err error) {
	old, ok := b.at[c.addr]
	switch {
	case !ok && c.size == 0:
		b.unsized++
	case !ok:
		if b.openings, err = budget.Append(b.memory, b.openings, opening{c.addr, c.size, c.stream}); err != nil {
			return nobody, err
		}
		old.stay = 2*uint64(len(b.openings)) - 1
	case old.stay == nobody:
		b.lostAllocs++
	case c.size != 0 && c.size != old.size:
		b.disagree++
	}
	return old.stay, budget.Put(b.memory, b.at, c.addr, resident{stay: nobody})
}

// put packs an event at the present time: its kind, the time since the one before, and its numbers.
func (b *book) put(kind trace.Kind, numbers ...uint64) (err error) {
	if b.packed, err = budget.Grow(b.memory, b.packed, 1+(1+len(numbers))*binary.MaxVarintLen64); err != nil {
		return err
	}
	b.events++
	b.packed = append(b.packed, byte(kind))
	b.packed = binary.AppendUvarint(b.packed, uint64(b.now-b.told))
	b.told = b.now
	for _, n := range numbers {
		b.packed = binary.AppendUvarint(b.packed, n)
	}
	return nil
}

// trace builds the trace of what was booked, with header h.
func (p *log) trace(h trace.Header, x *texts) (*trace.Trace, error) {
	for _, f := range []struct {
		key string
		n   int
	}{
		{"live_at_start_unmentioned_bytes", int(min(p.unseen, 1<<62))},
		{"frees_lost", p.lostFrees}, {"allocations_lost", p.lostAllocs}, {"lines_lost", p.lost},
		{"frees_of_unknown_size_left_out", p.unsized}, {"free_sizes_that_disagree", p.disagree},
		{"times_that_went_back", p.clamped},
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

// open adds what was live at the start, by stream and address, and what was never mentioned. It
// returns the ids of the openings.
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

// unpack adds the events. Births have the ids behind those of the openings.
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
			if stay := number(); stay%2 == 1 {
				e.ID = ids[stay/2]
			} else {
				e.ID = uint64(len(ids)) + stay/2 - 1
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
