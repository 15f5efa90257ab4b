package caching

import (
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Open returns an allocator that goes on from an opening state: chunks as Walk shows them, by address,
// that tile their segments. src holds the segments already and takes them back by Release. Pending
// chunks are taken for live ones: whoever recorded them frees them when their free became final. A
// private pool is taken to have one user.
//
// It fails like [New], and with an error that names the chunk if the state is none that the allocator can
// be in, or has expandable segments, which cannot be taken over.
func Open(src device.Source, c Config, opening []alloc.Chunk) (*Allocator, error) {
	a, err := New(src, c)
	if err != nil {
		return nil, err
	}
	for len(opening) > 0 {
		n := slices.IndexFunc(opening, func(c alloc.Chunk) bool { return c.Region != opening[0].Region })
		if n < 0 {
			n = len(opening)
		}
		if err := a.adopt(opening[:n]); err != nil {
			return nil, fmt.Errorf("caching: opening state: %w", err)
		}
		opening = opening[n:]
	}
	a.count.clear()
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("caching: opening state: %w", err)
	}
	return a, nil
}

// adopt enters a segment.
func (a *Allocator) adopt(chunks []alloc.Chunk) error {
	head := chunks[0]
	region := device.Region{Addr: head.Region, Size: chunks[len(chunks)-1].End().Sub(head.Region)}
	switch held, found := a.segments.Under(head.Region); {
	case found:
		return fmt.Errorf("the segment at %v begins in that at %v", head.Region, held.Addr)
	case a.set.expandable || head.Owner == alloc.OwnerExpandable:
		return fmt.Errorf("the segment at %v: expandable segments cannot be taken over", head.Region)
	case head.Class != alloc.ClassSmall && head.Class != alloc.ClassLarge:
		return fmt.Errorf("the segment at %v is of class %d: want %d or %d", head.Region, head.Class, alloc.ClassSmall, alloc.ClassLarge)
	}
	sh := a.shelfIn(a.openPool(head.Pool), uint32(head.Class), head.Stream)
	first, prev := none, none
	for _, c := range chunks {
		if err := a.judgeOpening(c, head); err != nil {
			return err
		}
		h := a.take()
		a.rows[h] = block{addr: c.Addr, size: c.Size, asked: c.Was, prev: prev, home: sh.id << shelfBit}
		if prev == none {
			first = h
		} else {
			a.rows[prev].next = h
		}
		prev = h
	}
	a.segments.Adopt(region, int32(first))
	sh.pool.segments++
	a.count.segment.add(sh.kind, 1)
	a.count.reservedBytes.add(sh.kind, int64(region.Size))
	if region.Size >= a.set.maxSplit {
		a.count.oversizeSegments.add(large, 1)
	}
	for i, h := 0, first; h != none; i, h = i+1, a.rows[h].next {
		a.adoptBlock(h, sh, chunks[i])
	}
	return nil
}

// openPool returns the pool of an opening state.
func (a *Allocator) openPool(id alloc.PoolID) *pool {
	i, found := a.findPool(id)
	if !found {
		a.pools = slices.Insert(a.pools, i, &pool{id: id, users: 1})
	}
	return a.pools[i]
}

// judgeOpening returns an error if a chunk is none that could lie in the segment of another.
func (a *Allocator) judgeOpening(c, head alloc.Chunk) error {
	switch {
	case c.Size == 0 || c.Size%quantum != 0:
		return fmt.Errorf("the block at %v has %d bytes: want a multiple of %d", c.Addr, uint64(c.Size), uint64(quantum))
	case c.State != alloc.Free && c.State != alloc.Live && c.State != alloc.Pending:
		return fmt.Errorf("the block at %v is %v", c.Addr, c.State)
	case c.Class != head.Class || c.Pool != head.Pool || c.Stream != head.Stream:
		return fmt.Errorf("the block at %v is of another class, pool or stream than its segment", c.Addr)
	case c.State != alloc.Free && (c.Requested == 0 || c.Requested > c.Size):
		return fmt.Errorf("the block at %v has %d bytes for a request of %d", c.Addr, uint64(c.Size), uint64(c.Requested))
	}
	return nil
}

// adoptBlock makes a block of an adopted segment what its chunk is.
func (a *Allocator) adoptBlock(h handle, sh *shelf, c alloc.Chunk) {
	b, n := &a.rows[h], &a.count
	if c.State == alloc.Free {
		if b.isSplit() {
			n.inactiveSplit.add(sh.kind, 1)
			n.inactiveSplitSize.add(sh.kind, int64(c.Size))
		}
		a.shelve(h, sh)
		return
	}
	b.become(live)
	b.asked = c.Requested
	a.enter(h)
	a.tags.Set(h, c.Tag, len(a.rows))
	a.booked(sh.kind, c.Requested, c.Size)
}

// ReleaseSegment gives back the segment that starts at an address, as a recording did for reasons of
// its own. It fails with [device.ErrInvalid] if no segment starts there or a block of it is not free,
// and with the device's error; then nothing has changed.
func (a *Allocator) ReleaseSegment(at device.Addr) error {
	a.busy.Enter("caching")
	defer a.busy.Leave()
	if a.closed {
		return alloc.ErrClosed
	}
	s, found := a.segments.Find(at)
	if !found {
		return device.ErrInvalid
	}
	h := handle(s.Label)
	if b := &a.rows[h]; b.isSplit() || b.state() != free {
		return device.ErrInvalid
	}
	return a.drain(h)
}
