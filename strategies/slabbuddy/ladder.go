package slabbuddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/invariants"
)

// allocShort serves a request for which nothing held serves. The device is asked, unless the cells
// asked it already. If it refuses, magazines are emptied, then empty slabs become blocks, then
// empty regions are released, with another attempt after each. At last the device is asked once
// more, and then for the request alone.
//
// Magazines come first because refilling them is cheap, the device last because its calls wait for
// the GPU.
func (a *Allocator) allocShort(r *alloc.Request, class int, small bool) (alloc.Block, error) {
	if !small {
		if b, ok := a.allocNew(r, class, false); ok {
			return b, nil
		}
	}
	releases := a.front.Stats.Releases
	for next := magazines; next <= emptyRegions; next++ {
		if !a.giveUp(next) {
			continue
		}
		if b, ok := a.allocHeld(r, class, small); ok {
			return b, nil
		}
	}
	if a.front.Stats.Releases != releases {
		if b, ok := a.allocNew(r, class, small); ok {
			return b, nil
		}
	}
	if b, ok := a.allocAlone(r, small); ok {
		return b, nil
	}
	return alloc.Block{}, a.outOfMemory(r)
}

type rung uint8

// The rungs, in their order.
const (
	magazines    rung = iota // return the slots in magazines to the slabs
	emptySlabs               // return slabs without a used slot to the buddy
	emptyRegions             // release regions without a live block
)

// giveUp takes a rung, and reports whether a request that failed may be served now.
func (a *Allocator) giveUp(next rung) bool {
	switch next {
	case magazines:
		return a.cells.Drain()
	case emptySlabs:
		return a.cells.Shed() > 0
	}
	_, _ = a.blocks.Trim() // refused regions stay held
	return false           // released memory is usable only after a new reservation
}

func (a *Allocator) allocHeld(r *alloc.Request, class int, small bool) (b alloc.Block, ok bool) {
	if small {
		return a.allocSlot(r, class, false)
	}
	return a.allocBlock(r)
}

// allocSlot serves a request by a slot; more lets the cells ask the device for memory.
func (a *Allocator) allocSlot(r *alloc.Request, class int, more bool) (b alloc.Block, ok bool) {
	p, ok := a.cells.Grab(class, 0, r, more)
	if ok {
		b = a.grantSlot(p, class, r.Size)
	}
	return b, ok
}

// allocNew serves a request out of a new region.
func (a *Allocator) allocNew(r *alloc.Request, class int, small bool) (alloc.Block, bool) {
	if small {
		return a.allocSlot(r, class, true)
	}
	return a.blockOr(r, a.blocks.GrabNew)
}

func (a *Allocator) allocBlock(r *alloc.Request) (b alloc.Block, ok bool) {
	if b.Addr, b.Size, _, ok = a.blocks.GrabHeld(r.Size, r.Align, r.Hint); ok {
		a.grantBlock(b, r)
	}
	return b, ok
}

// blockOr serves a request by grab, or keeps the error.
func (a *Allocator) blockOr(
	r *alloc.Request, grab func(n, align device.Size, hint alloc.Hint) (device.Addr, device.Size, uint64, error),
) (alloc.Block, bool) {
	addr, size, _, err := grab(r.Size, r.Align, r.Hint)
	if err != nil {
		a.pieces.short = shortage{err, a.blocks.Asked()}
		return alloc.Block{}, false
	}
	b := alloc.Block{Addr: addr, Size: size}
	a.grantBlock(b, r)
	return b, true
}

// allocAlone is the last attempt: a small request tries a block of the buddy, a direct request
// tries the pool, and a pool request tries a direct region.
func (a *Allocator) allocAlone(r *alloc.Request, small bool) (b alloc.Block, ok bool) {
	if small {
		if b, ok = a.allocBlock(r); ok {
			return b, true
		}
		if b, ok = a.blockOr(r, a.blocks.GrabNew); ok {
			return b, true
		}
	}
	return a.blockOr(r, func(n, align device.Size, hint alloc.Hint) (device.Addr, device.Size, uint64, error) {
		return a.blocks.GrabLast(n, align, hint, a.pieces.short.err)
	})
}

func (a *Allocator) outOfMemory(r *alloc.Request) error {
	if invariants.Enabled && (a.cells.CachedBytes() != 0 || a.cells.Shed() != 0) {
		panic("slabbuddy: invariant W5 (nothing is refused before all is given up): magazines or empty slabs are left")
	}
	return a.front.OutOfMemory(r, 0, a.pieces.short.asked, a.pieces.short.err)
}

func (a *Allocator) freeBytes() device.Size { return a.blocks.FreeBytes() + a.cells.FreeBytes() }
