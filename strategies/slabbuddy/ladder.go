package slabbuddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/invariants"
	"github.com/vramyard/vramyard/internal/planted"
	"github.com/vramyard/vramyard/internal/regions"
)

// grabShort serves a request for which nothing that is held serves as it is. The device is
// asked, unless the cells asked it already, and if it refuses, the ladder is climbed: what
// magazines hold goes back to the slabs, slabs without a used slot to the buddy, regions
// without a live block to the device. After each rung the request is tried again, and the
// next one is taken only if it still fails. In the end the device is asked once more, then
// for the request alone, and the request is refused.
//
// Magazines come first because they cost nothing but a few refills, the device last because
// its calls wait for the GPU.
func (a *Layers) grabShort(r alloc.Request, class int, small bool) (b alloc.Block, place uint64, ok bool) {
	if !small {
		if b, place, ok = a.grabNew(r); ok {
			return b, place, true
		}
	}
	releases := a.stats.Releases
	for next := magazines; next <= emptyRegions; next++ {
		if !a.giveUp(next) {
			continue
		}
		if b, place, ok = a.grabHeld(r, class, small); ok {
			return b, place, true
		}
	}
	if a.stats.Releases != releases {
		if small {
			b, place, ok = a.grabSlot(class)
		} else {
			b, place, ok = a.grabNew(r)
		}
		if ok {
			return b, place, true
		}
	}
	if b, place, ok = a.grabAlone(r, small); !ok {
		a.outOfMemory(r)
	}
	return b, place, ok
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
func (a *Layers) giveUp(next rung) bool {
	switch next {
	case magazines:
		return a.cells.Drain()
	case emptySlabs:
		return !(planted.Enabled && planted.Is("layers/empty-slabs-kept")) && a.cells.Shed() > 0
	}
	_, _ = a.blocks.Trim() // what the device does not take back stays
	return false           // what went back serves nobody until the device is asked
}

// grabHeld tries once more to serve a request from what is held.
func (a *Layers) grabHeld(r alloc.Request, class int, small bool) (b alloc.Block, place uint64, ok bool) {
	if small {
		cell, ok := a.cells.GrabHeld(class, 0)
		return alloc.Block{Addr: cell.Addr, Size: a.cells.Slot(class)}, cell.Place | slotMark, ok
	}
	b.Addr, b.Size, place, ok = a.blocks.GrabHeld(r.Size, r.Align, r.Hint)
	return b, place, ok
}

// grabNew asks the device for a region for the request.
func (a *Layers) grabNew(r alloc.Request) (b alloc.Block, place uint64, ok bool) {
	var err error
	b.Addr, b.Size, place, err = a.blocks.GrabNew(r.Size, r.Align, r.Hint)
	if err != nil {
		a.pieces.short = shortage{err, a.blocks.Asked()}
	}
	return b, place, err == nil
}

// grabAlone serves a request that there is no room for in the usual way: a small one by a
// block of its own, one that would have a region by the pool, one for the pool by a region.
func (a *Layers) grabAlone(r alloc.Request, small bool) (b alloc.Block, place uint64, ok bool) {
	if small {
		if b.Addr, b.Size, place, ok = a.blocks.GrabHeld(r.Size, r.Align, r.Hint); ok {
			return b, place, true
		}
		if b, place, ok = a.grabNew(r); ok {
			return b, place, true
		}
	}
	var err error
	b.Addr, b.Size, place, err = a.blocks.GrabLast(r.Size, r.Align, r.Hint, a.pieces.short.err)
	if err != nil {
		a.pieces.short = shortage{err, a.blocks.Asked()}
	}
	return b, place, err == nil
}

// refuse records a refused request. Nothing is built: why is all that is known of it.
func (a *Layers) refuse(r alloc.Request, why alloc.Reason) {
	a.refusal = alloc.Refusal{Reason: why, Request: r, LargestHole: a.largestFree(), Free: a.freeBytes()}
}

// outOfMemory records a request for which there was no memory when everything had been
// given up.
func (a *Layers) outOfMemory(r alloc.Request) {
	if invariants.Enabled && (a.cells.CachedBytes() != 0 || a.cells.Shed() != 0) {
		panic("slabbuddy: invariant W5 (nothing is refused before all is given up): magazines or empty slabs are left")
	}
	if !planted.Enabled || !planted.Is("layers/refusal-uncounted") {
		a.stats.OOMs++
	}
	a.refuse(r, alloc.ReasonNone)
	regions.Explain(&a.refusal, a.pieces.short.asked, a.pieces.short.err)
}

// largestFree returns the bytes of the largest free chunk, 0 if there is none.
func (a *Layers) largestFree() device.Size {
	if a.closed {
		return 0
	}
	return max(a.blocks.LargestFree(), a.cells.LargestFree())
}

// freeBytes returns the bytes in free chunks.
func (a *Layers) freeBytes() device.Size { return a.blocks.FreeBytes() + a.cells.FreeBytes() }
