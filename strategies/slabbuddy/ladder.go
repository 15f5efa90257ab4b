package slabbuddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/invariants"
)

// allocShort serves a request for which nothing that is held serves as it is. The device is
// asked, unless the cells asked it already, and if it refuses, the ladder is climbed: what
// magazines hold goes back to the slabs, slabs without a used slot to the buddy, regions
// without a live block to the device. After each rung the request is tried again, and the
// next one is taken only if it still fails. In the end the device is asked once more, then
// for the request alone, and the request is refused.
//
// Magazines come first because they cost nothing but a few refills, the device last because
// its calls wait for the GPU.
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

// rung is a step of the ladder that gives up memory.
type rung uint8

// The rungs, in their order.
const (
	magazines    rung = iota // what magazines hold goes back to the slabs
	emptySlabs               // slabs without a used slot go back to the buddy
	emptyRegions             // regions without a live block go back to the device
)

// giveUp takes a rung, and reports whether a request that failed may be served now.
func (a *Allocator) giveUp(next rung) bool {
	switch next {
	case magazines:
		return a.cells.Drain()
	case emptySlabs:
		return a.cells.Shed() > 0
	}
	_, _ = a.blocks.Trim() // what the device does not take back stays
	return false           // what went back serves nobody until the device is asked
}

// allocHeld tries once more to serve a request from what is held.
func (a *Allocator) allocHeld(r *alloc.Request, class int, small bool) (b alloc.Block, ok bool) {
	if small {
		p, ok := a.cells.Grab(class, 0, r, false)
		if !ok {
			return alloc.Block{}, false
		}
		return a.grantSlot(p, class, r.Size), true
	}
	return a.allocBlock(r)
}

// allocNew asks the device for a region for a request, a small one by way of the cells.
func (a *Allocator) allocNew(r *alloc.Request, class int, small bool) (alloc.Block, bool) {
	if small {
		p, ok := a.cells.Grab(class, 0, r, true)
		if !ok {
			return alloc.Block{}, false
		}
		return a.grantSlot(p, class, r.Size), true
	}
	return a.blockOr(r, a.blocks.GrabNew)
}

// allocBlock serves a request by a block of the buddy that is held.
func (a *Allocator) allocBlock(r *alloc.Request) (b alloc.Block, ok bool) {
	if b.Addr, b.Size, _, ok = a.blocks.GrabHeld(r.Size, r.Align, r.Hint); ok {
		a.grantBlock(b, r)
	}
	return b, ok
}

// blockOr serves a request by a block that the buddy asks the device for, or remembers why not.
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

// allocAlone serves a request that there is no room for in the usual way: a small one by a
// block of its own, one that would have a region by the pool, one for the pool by a region.
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

// outOfMemory records a request for which there was no memory when everything had been
// given up.
func (a *Allocator) outOfMemory(r *alloc.Request) error {
	if invariants.Enabled && (a.cells.CachedBytes() != 0 || a.cells.Shed() != 0) {
		panic("slabbuddy: invariant W5 (nothing is refused before all is given up): magazines or empty slabs are left")
	}
	return a.front.OutOfMemory(r, 0, a.pieces.short.asked, a.pieces.short.err)
}

// largestFree returns the bytes of the largest free chunk, 0 if there is none.
func (a *Allocator) largestFree() device.Size {
	if a.front.Closed() {
		return 0
	}
	return max(a.blocks.LargestFree(), a.cells.LargestFree())
}

// freeBytes returns the bytes in free chunks.
func (a *Allocator) freeBytes() device.Size { return a.blocks.FreeBytes() + a.cells.FreeBytes() }
