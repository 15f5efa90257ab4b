package blocks

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// This file is for strategies that have memory of their own to give up before a region
// without a live block goes back. [Engine.Grab] is a whole ladder; these are its rungs.

// GrabHeld is Grab out of what is held: it merges what was left unmerged, and neither asks
// the device for memory nor gives it any. It reports whether there was a block.
//
// Precondition: Judge finds nothing in the request.
func (b *Engine) GrabHeld(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size, place uint64, ok bool) {
	if n <= b.halves && align == 0 && hint != alloc.HintHigh {
		if addr, granted, place, ok = b.grabHalf(n); ok {
			return addr, granted, place, true
		}
	}
	if n > b.direct {
		return b.grabKept(n)
	}
	return b.grabPool(n, align, hint)
}

// grabPool serves a request from the pool, whatever its size.
func (b *Engine) grabPool(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size, place uint64, ok bool) {
	w := b.needOf(n, align)
	if w.class < 0 {
		return 0, 0, 0, false
	}
	slot, from, ok := b.find(w.class, hint)
	if !ok && b.coalesce() {
		slot, from, ok = b.find(w.class, hint)
	}
	if ok {
		addr, granted, place = b.take(slot, from, w, hint)
	}
	return addr, granted, place, ok
}

// grabKept serves a request by a direct region that was kept, if one fits within an eighth.
func (b *Engine) grabKept(n device.Size) (addr device.Addr, granted device.Size, place uint64, ok bool) {
	size := device.AlignUp(n, device.Size(1)<<b.shift)
	i := b.keptAt(size, 0)
	if i == len(b.kept) || b.regs[b.kept[i]].direct > mostKept(size) {
		return 0, 0, 0, false
	}
	slot := b.kept[i]
	b.kept = slices.Delete(b.kept, i, i+1)
	b.cache -= b.regs[slot].direct
	addr, granted, place = b.takeDirect(slot)
	return addr, granted, place, true
}

// GrabNew takes one more region from the device and grants the request out of it. It gives
// nothing back but direct regions of which too much is kept. The error is as of Grab, and
// Asked tells what was tried.
//
// Precondition: GrabHeld has no block for the request.
func (b *Engine) GrabNew(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size, place uint64, err error) {
	b.asked = 0
	if n <= b.direct {
		if w := b.needOf(n, align); w.class >= 0 {
			if err = b.addRegion(device.Size(b.classes.size[w.class]) << b.shift); err != nil {
				return 0, 0, 0, err
			}
			slot, from, _ := b.find(w.class, hint)
			addr, granted, place = b.take(slot, from, w, hint)
			return addr, granted, place, nil
		}
	}
	slot, err := b.reserveDirect(device.AlignUp(n, device.Size(1)<<b.shift))
	if err != nil {
		return 0, 0, 0, err
	}
	addr, granted, place = b.takeDirect(slot)
	return addr, granted, place, nil
}

// GrabLast is what is left when neither GrabHeld nor GrabNew serves: a request above the
// bound for the pool may be served by it all the same, and one below the bound by a region
// of its own where that is smaller than a block. If there is neither, the error is refused,
// which GrabNew answered, or that of the smaller region.
//
// Precondition: neither GrabHeld nor GrabNew serves the request.
func (b *Engine) GrabLast(n, align device.Size, hint alloc.Hint, refused error) (addr device.Addr, granted device.Size, place uint64, err error) {
	if n > b.direct {
		if addr, granted, place, ok := b.grabPool(n, align, hint); ok {
			return addr, granted, place, nil
		}
		return 0, 0, 0, refused
	}
	size := device.AlignUp(n, device.Size(1)<<b.shift)
	if w := b.needOf(n, align); w.class < 0 || size == device.Size(b.classes.size[w.class])<<b.shift {
		return 0, 0, 0, refused // the region was no larger
	}
	slot, err := b.reserveDirect(size)
	if err != nil {
		return 0, 0, 0, err
	}
	addr, granted, place = b.takeDirect(slot)
	return addr, granted, place, nil
}

// RegionOf returns where the region of a live block starts, from its place.
func (b *Engine) RegionOf(place uint64) device.Addr { return b.regs[slotOf(place)].base }

// IsDirect reports whether a live block has a region of its own, from its place.
func IsDirect(place uint64) bool { return place&directPlace != 0 }

// Empty returns the bytes of regions of the pool without a live block, and of direct regions
// that are kept.
func (b *Engine) Empty() device.Size { return b.pool.Empty() + b.cache }

// BlockFor returns a function that tells the bytes of the smallest block of the modern mode with
// room for n bytes, and whether there is one. To work out the classes costs far more than to ask.
//
// Precondition: defaults are filled in, and n is not zero.
func (c Config) BlockFor() func(n device.Size) (size device.Size, ok bool) {
	t := classesOf(c.Family)
	return func(n device.Size) (size device.Size, ok bool) {
		units := (n-1)/c.BlockBytes + 1
		if units > c.mostUnits() {
			return 0, false
		}
		return device.Size(t.size[t.holding(uint32(units))]) * c.BlockBytes, true
	}
}
