package bestfit

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/tiles"
)

// Placer is a best fit that can also place a block at a given address, for strategies that plan.
// Its free chunks are kept by address too, which costs O(log chunks) for each change.
type Placer struct {
	*Allocator
}

// NewPlacer returns a best fit over src that can place blocks. It fails if c is invalid.
func NewPlacer(src device.Source, c Config) (Placer, error) {
	a, err := New(src, c)
	return Placer{a}, err
}

// Accepts reports whether the allocator is open and can ever grant a request.
func (p Placer) Accepts(r *alloc.Request) bool { return p.core.Accepts(r) }

// Track begins to keep the free chunks by address, which [Placer.Place] needs; it does nothing if
// they are. O(free chunks).
func (p Placer) Track() {
	x := &p.free
	if x.tracked {
		return
	}
	x.tracked = true
	x.places.Clear()
	for h := range x.All {
		x.enter(h)
	}
}

// Untrack ends what Track began.
func (p Placer) Untrack() { p.free.tracked = false }

// Place grants a block of n bytes at an address for a request, and reports whether it could: the
// bytes are free in one chunk, and the address has the alignment.
//
// Precondition: the chunks are tracked, the request is accepted, and n is a multiple of the quantum
// and at least the request.
func (p Placer) Place(r *alloc.Request, at device.Addr, n device.Size) (alloc.Block, bool) {
	c, x := &p.core, &p.free
	h := x.containing(at, n)
	if h == tiles.None || tiles.Pad(at, r.Align) != 0 || tiles.Pad(at, p.cfg.Quantum) != 0 {
		return alloc.Block{}, false
	}
	x.Remove(h)
	if c.Fills(h) {
		c.Occupy(h)
	}
	if pad := at.Sub(c.Rows[h].Addr); pad != 0 {
		rest := c.Split(h, pad)
		x.Insert(h)
		h = rest
	}
	if c.Rows[h].Size > n {
		x.Insert(c.Split(h, n))
	}
	return c.Grant(h, r), true
}

// Drop is Free that also returns the reference of the block.
func (p Placer) Drop(at device.Addr) (ref uint32, err error) {
	prev, h, next, err := p.core.Release(at)
	if err == nil {
		p.settle(prev, h, next)
	}
	return h, err
}

// Gaps yields the free chunks by address.
//
// Precondition: the chunks are tracked.
func (p Placer) Gaps(yield func(at device.Addr, n device.Size) bool) {
	for e := range p.free.places.All {
		if !yield(e.Addr, p.core.Rows[e.Value].Size) {
			return
		}
	}
}

// enter adds a free chunk to the list by address.
func (x *freeIndex) enter(h tiles.Handle) {
	a := x.core.Rows[h].Addr
	at, _ := x.places.Search(a)
	x.places.Insert(at, index.AddrEntry[tiles.Handle]{Addr: a, Value: h})
}

// leave removes a free chunk from the list by address.
func (x *freeIndex) leave(h tiles.Handle) {
	at, _ := x.places.Search(x.core.Rows[h].Addr)
	x.places.Delete(at)
}

// containing returns the free chunk that contains n bytes from an address, or tiles.None.
func (x *freeIndex) containing(at device.Addr, n device.Size) tiles.Handle {
	p, ok := x.places.Floor(at)
	if !ok {
		return tiles.None
	}
	h := x.places.Entry(p).Value
	if end := x.core.Rows[h].End(); at >= end || n > end.Sub(at) {
		return tiles.None
	}
	return h
}

// checkPlaces checks the list by address. Addresses are unique, so a list of n free chunks under
// their addresses is all of them.
func (x *freeIndex) checkPlaces(n int) error {
	if !x.tracked {
		return nil
	}
	if got := x.places.Len(); got != n {
		return fmt.Errorf("invariant F3 (the list holds the free chunks): %d entries, %d free chunks", got, n)
	}
	last := device.Addr(0)
	for e := range x.places.All {
		r := &x.core.Rows[e.Value]
		if !x.core.IsFree(e.Value) || r.Addr != e.Addr || e.Addr <= last {
			return fmt.Errorf("invariant F3 (the list holds the free chunks): entry %v after %v, chunk at %v", e.Addr, last,
				r.Addr)
		}
		last = e.Addr
	}
	return nil
}
