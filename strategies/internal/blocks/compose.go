package blocks

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// The steps of [Engine.Grab], for strategies that have memory of their own to give up before a
// region without a live block goes back.

// GrabHeld is Grab without a device call. It merges buddies that were left unmerged if it must.
//
// Precondition: Judge returns ReasonNone for the request.
func (b *Engine) GrabHeld(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size,
	place uint64, ok bool) {
	if b.mayHalve(n, align, hint) {
		if addr, granted, place, ok = b.grabHalf(n); ok {
			return addr, granted, place, true
		}
	}
	return b.grabOther(n, align, hint)
}

// mayHalve reports whether grabHalf serves such requests.
func (b *Engine) mayHalve(n, align device.Size, hint alloc.Hint) bool {
	return n <= b.halves && align == 0 && hint != alloc.HintHigh
}

// grabOther is GrabHeld for requests that grabHalf does not serve.
func (b *Engine) grabOther(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size,
	place uint64, ok bool) {
	if n > b.direct {
		return b.grabKept(n)
	}
	return b.grabPool(n, align, hint)
}

// grabPool serves a request of any size from the pool.
func (b *Engine) grabPool(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size,
	place uint64, ok bool) {
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

// grabKept serves a request by a kept direct region of at most an eighth more.
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

// GrabNew reserves a region and grants the request out of it. It releases only direct regions, if
// too many are kept. The error is as of Grab.
//
// Precondition: GrabHeld has no block for the request.
func (b *Engine) GrabNew(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size, place uint64,
	err error) {
	b.asked = 0
	return b.grabNew(n, align, hint)
}

// grabNew is GrabNew without a reset of the value of Asked.
func (b *Engine) grabNew(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size, place uint64,
	err error) {
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

// GrabLast is the last attempt after GrabNew failed with an error: a request above the bound for
// the pool may be served by the pool, and one below it by a region of its own if that is smaller
// than a block. Otherwise the error is the given one or the device's.
//
// Precondition: neither GrabHeld nor GrabNew serves the request.
func (b *Engine) GrabLast(n, align device.Size, hint alloc.Hint, refused error) (addr device.Addr, granted device.Size,
	place uint64, err error) {
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

// RegionOf returns the start of the region of a live block from its place.
func (b *Engine) RegionOf(place uint64) device.Addr { return b.regs[slotOf(place)].base }

// IsDirect reports whether the live block with a place has a region of its own.
func IsDirect(place uint64) bool { return place&directPlace != 0 }

// Empty returns the bytes of pool regions without a live block and of kept direct regions.
func (b *Engine) Empty() device.Size { return b.pool.Empty() + b.cache }

// BlockFor returns a function that returns the bytes of the smallest block with room for n bytes,
// if there is one. Computing the classes costs far more than calling it.
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
