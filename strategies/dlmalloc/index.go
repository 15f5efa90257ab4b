package dlmalloc

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/tiles"
)

// The owners of free chunks, as they appear in alloc.Chunk.Owner.
const (
	OwnerBin uint8 = iota // a small bin or a tree bin
	OwnerDV               // the designated victim
	OwnerTop              // the end of the active region
)

// freeIndex is the free chunks: dv, top, the small bins and the trees. It implements tiles.Index.
type freeIndex struct {
	trees
	small [smallBins]tiles.Handle // anchors of rings, the chunk freed last first; 0 is not used
	near  uint64                  // bit i: a chunk i quanta above the request is not split
	dv    tiles.Handle
	top   tiles.Handle
	end   device.Addr // end of the active region, whose last chunk is top while it is free
}

// activate makes a region, filled by the chunk h, the active one. The top of the last one goes to
// its bin.
func (x *freeIndex) activate(h tiles.Handle) {
	old := x.top
	x.top, x.end = tiles.None, x.core.Rows[h].End()
	if old != tiles.None {
		x.Insert(old)
	}
}

// isTop reports whether a free chunk is the end of the active region.
func (x *freeIndex) isTop(h tiles.Handle) bool { return x.core.Rows[h].End() == x.end }

// Insert implements tiles.Index: a chunk is top or goes to its bin, never dv. O(bits of a size).
func (x *freeIndex) Insert(h tiles.Handle) {
	if x.isTop(h) {
		x.top = h
		return
	}
	bin := x.bin(x.core.Rows[h].Size)
	x.marks |= 1 << bin
	if bin < smallBins {
		x.core.Link(h, x.small[bin])
	} else {
		x.insert(h, bin)
	}
}

// Remove implements tiles.Index. O(bits of a size).
func (x *freeIndex) Remove(h tiles.Handle) {
	switch bin := x.bin(x.core.Rows[h].Size); {
	case h == x.dv:
		x.dv = tiles.None
	case h == x.top:
		x.top = tiles.None
	case bin >= smallBins:
		x.remove(h, bin)
	case x.core.Unlink(h):
		x.marks &^= 1 << bin
	}
}

// replaceVictim makes a chunk dv. The last dv goes to its bin.
func (x *freeIndex) replaceVictim(h tiles.Handle) {
	if x.dv != tiles.None {
		x.Insert(x.dv)
	}
	x.dv = h
}

// take takes the chunk for n bytes out of the index, or returns tiles.None. It reports whether the
// remainder becomes dv. O(bits of a size).
func (x *freeIndex) take(n device.Size) (h tiles.Handle, victim bool) {
	if bin := x.bin(n); bin < smallBins {
		h, victim = x.takeSmall(n, bin)
	} else if x.marks >= 1<<smallBins {
		h = x.ceil(n)
		// A dv that is too small has a difference beyond every chunk.
		if h != tiles.None && x.core.Rows[h].Size-n >= x.core.Rows[x.dv].Size-n {
			h = tiles.None
		}
	}
	if h == tiles.None {
		switch rows := x.core.Rows; {
		case n <= rows[x.dv].Size:
			h, victim = x.dv, true
		case n <= rows[x.top].Size:
			h = x.top
		default:
			return tiles.None, false
		}
	}
	x.Remove(h)
	return h, victim
}

// takeSmall returns a chunk of a bin for a small request: one without a remainder, or, if dv is too
// small, the smallest.
func (x *freeIndex) takeSmall(n device.Size, bin uint32) (h tiles.Handle, victim bool) {
	above := x.marks >> bin << bin
	if exact := above & (x.near << bin) & (1<<smallBins - 1); exact != 0 {
		return x.core.After(x.small[bits.TrailingZeros64(exact)]), false
	}
	if above == 0 || n <= x.core.Rows[x.dv].Size {
		return tiles.None, false
	}
	least := uint32(bits.TrailingZeros64(above))
	if least < smallBins {
		return x.core.After(x.small[least]), true
	}
	return x.smallest(x.roots[least-smallBins]), true
}

// Largest implements tiles.Index. O(bits of a size).
func (x *freeIndex) Largest() device.Size {
	most := max(x.core.Rows[x.dv].Size, x.core.Rows[x.top].Size)
	if x.marks == 0 {
		return most
	}
	bin := uint32(bits.Len64(x.marks) - 1)
	if bin < smallBins {
		return max(most, device.Size(bin)<<x.quantum)
	}
	for h := x.roots[bin-smallBins]; h != tiles.None; {
		most = max(most, x.core.Rows[h].Size)
		h = cmp.Or(x.nodes[h].child[1], x.nodes[h].child[0])
	}
	return most
}

func (x *freeIndex) Bytes() device.Size { return x.bytes() }

// All implements tiles.Index: the bins from the lowest up, each by size and in the order in which
// its chunks are taken, then dv, then top.
func (x *freeIndex) All(yield func(tiles.Handle) bool) {
	for bin, anchor := range x.small {
		for h := x.core.After(anchor); bin > 0 && h != anchor; h = x.core.After(h) {
			if !yield(h) {
				return
			}
		}
	}
	for _, root := range x.roots {
		sizes := x.below(root, nil)
		slices.SortFunc(sizes, func(g, h tiles.Handle) int { return cmp.Compare(x.core.Rows[g].Size, x.core.Rows[h].Size) })
		for _, first := range sizes {
			for h := first; ; {
				if !yield(h) {
					return
				}
				if h = x.core.After(h); h == first {
					break
				}
			}
		}
	}
	_ = (x.dv == tiles.None || yield(x.dv)) && x.top != tiles.None && yield(x.top)
}

// Show returns the number of the bin; dv and top have none.
func (x *freeIndex) Show(h tiles.Handle) (class int32, owner uint8) {
	switch h {
	case x.dv:
		return alloc.NoClass, OwnerDV
	case x.top:
		return alloc.NoClass, OwnerTop
	}
	return int32(x.bin(x.core.Rows[h].Size)), OwnerBin
}
