package slab

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// kept holds the regions of freed large blocks that wait for another block. Sizes are what was
// asked of the device. Use [newKept].
type kept struct {
	bySize index.SizeMap     // handles are unused
	bytes  device.Size       // of all regions
	waste  int               // Config.LargeWaste; 0 if no region is kept
	order  []index.SizeEntry // of byAddress
}

func newKept(c Config) kept {
	return kept{bySize: index.NewSizeMap(c.Quantum), waste: c.LargeWaste}
}

// mostKept returns the size of the largest kept region for a block of size bytes, which leaves one
// part in waste of it unused.
func mostKept(size device.Size, waste int) device.Size { return size + size/device.Size(waste-1) }

func (k *kept) add(at device.Addr, size device.Size) {
	k.bySize.Insert(size, at, 0)
	k.bytes += size
}

func (k *kept) remove(at index.SizeAt) {
	k.bytes -= k.bySize.Entry(at).Size
	k.bySize.Take(at)
}

// take removes the smallest region that serves a block of size bytes, the lowest of equals.
func (k *kept) take(size device.Size) (e index.SizeEntry, ok bool) {
	at := k.bySize.Ceil(size)
	if at == index.NoEntry {
		return e, false
	}
	if e = k.bySize.Entry(at); e.Size > mostKept(size, k.waste) {
		return e, false
	}
	k.remove(at)
	return e, true
}

// byAddress returns the regions by address.
func (k *kept) byAddress() []index.SizeEntry {
	k.order = k.bySize.AppendTo(k.order[:0])
	slices.SortFunc(k.order, func(a, b index.SizeEntry) int { return cmp.Compare(a.Addr, b.Addr) })
	return k.order
}

// next returns the region to release for n bytes: the smallest that has so many, else the largest,
// so that one release is enough if it can be.
//
// Precondition: there is a region.
func (k *kept) next(n device.Size) index.SizeAt {
	at := k.bySize.Ceil(n)
	if at == index.NoEntry {
		at = k.bySize.Ceil(k.bySize.Largest())
	}
	return at
}
