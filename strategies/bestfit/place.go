package bestfit

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
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
		x.places.Enter(h)
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
	x := &p.free
	h := x.places.Containing(at, n)
	if h == tiles.None || tiles.Pad(at, r.Align) != 0 || tiles.Pad(at, p.cfg.Quantum) != 0 {
		return alloc.Block{}, false
	}
	x.Remove(h)
	return p.core.Cut(h, at, n, r), true
}

// Drop is Free that also returns the reference of the block.
func (p Placer) Drop(at device.Addr) (ref uint32, err error) {
	prev, h, next, err := p.core.Release(at)
	if err == nil {
		p.settle(prev, h, next)
	}
	return h, err
}

// Active returns the live bytes.
func (p Placer) Active() device.Size { return p.core.Stats.Active }

// Live returns the number of live blocks.
func (p Placer) Live() int { return p.core.Stats.Live }

// Blocks yields the live blocks in the order of Walk, each with its reference.
func (p Placer) Blocks(yield func(alloc.Block) bool) { p.core.Blocks(yield) }

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
