package cells

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// FreeBytes returns the bytes in free slots and in slabs without a used slot. O(1).
func (a *Engine) FreeBytes() device.Size { return a.usable - a.used + a.empties }

// CachedBytes returns the bytes of the slots in magazines. O(1).
func (a *Engine) CachedBytes() device.Size { return a.cached.bytes }

// Slabs returns the number of slabs held. O(1).
func (a *Engine) Slabs() int { return a.taken }

// LargestFree returns the size of the largest free slot or empty slab. O(classes).
func (a *Engine) LargestFree() (largest device.Size) {
	for i := len(a.kinds) - 1; i >= 0; i-- {
		k := &a.kinds[i]
		if k.partial > 0 {
			largest = max(largest, k.slot)
		}
		if k.empties > 0 {
			largest = max(largest, k.slab)
		}
	}
	return largest
}

// Host memory of the records, in bytes.
const (
	kindBytes  = 64
	stockBytes = 48
	slabBytes  = 64
	backBytes  = 12
	rackBytes  = 16
	depotBytes = 12
	cellBytes  = 8
)

// Bytes returns the host memory of the engine, unused capacity included. It costs O(segments *
// classes) with the selection of the lowest address, else O(1).
func (a *Engine) Bytes() device.Size {
	n := cap(a.kinds)*kindBytes + cap(a.stocks)*stockBytes + cap(a.slabs)*slabBytes + cap(a.backs)*backBytes +
		cap(a.classOf)*2 +
		a.words.bytes()
	for _, again := range a.spare {
		n += cap(again) * 4
	}
	for _, h := range a.heaps {
		n += 24 + cap(h)*4
	}
	m := &a.cached
	n += cap(m.racks)*rackBytes + cap(m.depots)*depotBytes + cap(m.cells)*cellBytes + cap(m.next)*4
	return device.Size(n) + a.where.Bytes() + a.notes.Bytes()
}

// Piece returns the memory of a slab that is held.
func (a *Engine) Piece(slab int32) Piece { return Piece{a.slabs[slab].base, a.backs[slab].handle} }

// ClassOfSlab returns the class of a slab that is held.
func (a *Engine) ClassOfSlab(slab int32) int { return int(a.slabs[slab].class) }

// WalkSlab yields the chunks of a slab by address: each slot, and the bytes after the last slot as
// slack. A slab without a used slot is one free chunk without a class. It reports whether the walk
// continues.
//
// Precondition: the slab is held.
func (a *Engine) WalkSlab(slab int32, region device.Addr, yield func(alloc.Chunk) bool) bool {
	s := &a.slabs[slab]
	k := &a.kinds[s.class]
	if uint32(s.left) == k.slots {
		return yield(alloc.Chunk{Region: region, Addr: s.base, Size: k.slab, Class: alloc.NoClass})
	}
	for slot := range k.slots {
		if !yield(a.chunkOf(cell{slab, slot}, region)) {
			return false
		}
	}
	if used := k.slot * device.Size(k.slots); used != k.slab {
		return yield(alloc.Chunk{
			Region: region, Addr: s.base.Add(used), Size: k.slab - used, State: alloc.Slack, Class: alloc.NoClass,
		})
	}
	return true
}

func (a *Engine) chunkOf(c cell, region device.Addr) alloc.Chunk {
	s := &a.slabs[c.slab]
	size := a.kinds[s.class].slot
	chunk := alloc.Chunk{Region: region, Addr: s.base.Add(device.Size(c.slot) * size), Size: size, Class: int32(s.class)}
	if a.isFree(c) {
		return chunk
	}
	switch slack := *a.slackOf(c.slab, c.slot); slack {
	case slackCached:
		chunk.State = alloc.Cached
	case slackNoted:
		b, _ := a.notes.Get(chunk.Addr)
		chunk.State, chunk.Requested, chunk.Stream, chunk.Tag = alloc.Live, b.Requested, b.Stream, b.Tag
	default:
		chunk.State, chunk.Requested = alloc.Live, size-device.Size(slack)
	}
	return chunk
}

// WalkFree yields the free chunks in search order: by segment, then by class, slots before slabs
// without a used one. RegionOf returns the region of a piece. It reports whether the walk goes on.
func (a *Engine) WalkFree(regionOf func(Piece) device.Addr, yield func(alloc.Chunk) bool) bool {
	for i := range a.stocks {
		for n := range a.slabsInOrder(i) {
			s := &a.slabs[n]
			region, k := regionOf(a.Piece(n)), &a.kinds[s.class]
			if uint32(s.left) == k.slots {
				if !yield(alloc.Chunk{Region: region, Addr: s.base, Size: k.slab, Class: alloc.NoClass}) {
					return false
				}
				continue
			}
			for slot := range k.slots {
				if c := (cell{n, slot}); a.isFree(c) && !yield(a.chunkOf(c, region)) {
					return false
				}
			}
		}
	}
	return true
}

// slabsInOrder yields the slabs of a stock in the order in which they serve, with their levels.
func (a *Engine) slabsInOrder(stock int) func(func(int32, uint32) bool) {
	return func(yield func(int32, uint32) bool) {
		sh := &a.stocks[stock]
		if a.lowest {
			sorted := slices.Clone(a.heaps[stock])
			slices.SortFunc(sorted, func(m, n int32) int { return int(int64(a.slabs[m].base - a.slabs[n].base)) })
			for _, n := range sorted {
				if !yield(n, 0) {
					return
				}
			}
		} else {
			for level := range uint32(levels) {
				if !a.circle(sh.head[level], level, yield) {
					return
				}
			}
		}
		a.circle(sh.head[levelEmpty], levelEmpty, yield)
	}
}

// circle yields the slabs of a circular list and reports whether the walk continues.
func (a *Engine) circle(head int32, level uint32, yield func(int32, uint32) bool) bool {
	for n := head; n != None; {
		if !yield(n, level) {
			return false
		}
		if n = a.slabs[n].next; n == head {
			break
		}
	}
	return true
}
