package slabbuddy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

var (
	_ alloc.Strategy   = (*Allocator)(nil)
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Trimmer    = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// mostRequest is the largest size that [blocks.Engine] judges to be possible.
const mostRequest device.Size = 1 << 60

// LargestFree implements [power.Holes]. O(classes).
func (a *Allocator) LargestFree() device.Size {
	if a.front.Closed() {
		return 0
	}
	return max(a.blocks.LargestFree(), a.cells.LargestFree())
}

func (a *Allocator) MetadataBytes() device.Size {
	n := a.blocks.Bytes() + a.live.Bytes() + device.Size(cap(a.pieces.sizes))*8 +
		device.Size(cap(a.pieces.places)+cap(a.order))*4
	if !a.front.Closed() {
		n += a.cells.Bytes()
	}
	return n
}

// sortSlabs sorts the slabs by address for Walk.
func (a *Allocator) sortSlabs() {
	a.order = a.order[:0]
	for n, place := range a.pieces.places {
		if place != 0 {
			a.order = append(a.order, int32(n))
		}
	}
	slices.SortFunc(a.order, func(m, n int32) int { return cmp.Compare(a.cells.Piece(m).Addr, a.cells.Piece(n).Addr) })
}

// Walk implements [alloc.Inspector]. A slab is shown as its slots, or as one free chunk without a
// class if none is used. The bytes of a kept region beyond its slab are slack. Owner is the part,
// and the class is relative to it.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		a.blocks.WalkSlack(yield)
		return
	}
	slot := func(c alloc.Chunk) bool {
		c.Owner = OwnerSlab
		return yield(c)
	}
	a.spans(func(s blocks.Span, number int32) bool {
		if number < 0 {
			return yield(a.chunkOf(s))
		}
		size := a.slabBytes(number)
		return a.cells.WalkSlab(number, s.Region, slot) && (s.Size <= size || slot(alloc.Chunk{
			Region: s.Region, Addr: s.Addr.Add(size), Size: s.Size - size, State: alloc.Slack, Class: alloc.NoClass,
		}))
	})
}

// slabBytes returns the size of a held slab. Its block has that size or is a larger kept region.
func (a *Allocator) slabBytes(number int32) device.Size {
	return a.pieces.sizes[a.cells.ClassOfSlab(number)]
}

// granted returns the bytes of the live block of the buddy at an address.
func (a *Allocator) granted(at device.Addr, l front.LiveBlock) device.Size {
	place, _ := a.blocks.PlaceOf(at)
	return a.blocks.Granted(l.Requested, place)
}

// slabGranted returns the bytes and the place of the block of a held slab.
func (a *Allocator) slabGranted(number int32) (granted device.Size, place uint64) {
	place = a.pieces.placeOf(a.cells.Piece(number))
	return a.blocks.Granted(a.slabBytes(number), place), place
}

// spans yields the tiles of the buddy by address, with the number of the slab there or -1.
func (a *Allocator) spans(yield func(s blocks.Span, number int32) bool) {
	a.sortSlabs()
	i, number := 0, int32(-1)
	a.blocks.Spans(func(at device.Addr) device.Size {
		for i < len(a.order) && a.cells.Piece(a.order[i]).Addr < at {
			i++
		}
		if i < len(a.order) && a.cells.Piece(a.order[i]).Addr == at {
			number = a.order[i]
			granted, _ := a.slabGranted(number)
			return granted
		}
		if l, ok := a.live.Get(at); ok {
			return a.granted(at, l)
		}
		return 0
	}, func(s blocks.Span) bool {
		n := number
		number = -1
		return yield(s, n)
	})
}

// chunkOf returns a tile of the buddy as a chunk.
func (a *Allocator) chunkOf(s blocks.Span) alloc.Chunk {
	c := alloc.Chunk{Region: s.Region, Addr: s.Addr, Size: s.Size, State: s.State, Class: s.Class, Owner: OwnerBuddy}
	direct := s.State == alloc.Free && s.Class == alloc.NoClass
	if s.State == alloc.Live {
		l, _ := a.live.Get(s.Addr)
		c.Requested, c.Stream, c.Tag = l.Requested, l.Stream, l.Tag
		place, _ := a.blocks.PlaceOf(s.Addr)
		direct = blocks.IsDirect(place)
	}
	if direct {
		c.Owner = OwnerDirect
	}
	return c
}

// WalkFree implements [power.FreeWalker]: the free slots and empty slabs, class by class, and then
// the free blocks of the buddy in search order.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		return
	}
	regionOf := func(p cells.Piece) device.Addr { return a.blocks.RegionOf(a.pieces.placeOf(p)) }
	if a.cells.WalkFree(regionOf, func(c alloc.Chunk) bool {
		c.Owner = OwnerSlab
		return yield(c)
	}) {
		a.blocks.WalkFree(func(s blocks.Span) bool { return yield(a.chunkOf(s)) })
	}
}

// Check implements [alloc.Inspector]. It reads every record.
func (a *Allocator) Check() error {
	if !a.front.Closed() {
		if err := a.blocks.Check(); err != nil {
			return fmt.Errorf("slabbuddy: invariant W4 (each part keeps its own): buddy: %w", err)
		}
		if err := a.checkSlabs(); err != nil {
			return err
		}
		if err := a.checkOwners(); err != nil {
			return err
		}
		if err := a.cells.Check(); err != nil {
			return fmt.Errorf("slabbuddy: invariant W4 (each part keeps its own): %w", err)
		}
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("slabbuddy: invariant W6 (counters match the walk): %w", err)
	}
	return nil
}

// checkSlabs verifies that each slab is one whole block of the buddy.
func (a *Allocator) checkSlabs() (err error) {
	found := 0
	a.spans(func(s blocks.Span, number int32) bool {
		if number < 0 {
			return true
		}
		found++
		bytes, p := a.slabBytes(number), a.cells.Piece(number)
		granted, place := a.slabGranted(number)
		if fits := s.Size == bytes || s.Size > bytes && blocks.IsDirect(place); s.State != alloc.Live || !fits ||
			s.Size != granted || p.Addr != s.Addr || int32(p.Handle) != number {
			err = fmt.Errorf("slabbuddy: invariant W1 (a slab is one block of the buddy): slab %d of %d bytes at %v, a span "+
				"of %d, granted %d",
				number, uint64(bytes), s.Addr, uint64(s.Size), uint64(granted))
		}
		return err == nil
	})
	if err == nil && (found != a.cells.Slabs() || found != len(a.order)) {
		err = fmt.Errorf("slabbuddy: invariant W1 (a slab is one block of the buddy): %d of %d slabs found, %d have a block",
			found, a.cells.Slabs(), len(a.order))
	}
	return err
}

// checkOwners verifies that granted blocks are slabs or live blocks, and that slots are of the
// right class.
func (a *Allocator) checkOwners() (err error) {
	granted := 0
	a.spans(func(s blocks.Span, number int32) bool {
		if number >= 0 {
			err = a.checkSlots(s, number)
			return err == nil
		}
		if s.State != alloc.Live {
			return true
		}
		granted++
		if l, ok := a.live.Get(s.Addr); !ok || a.granted(s.Addr, l) != s.Size {
			err = fmt.Errorf("slabbuddy: invariant W2 (a granted block is a slab or live): %d bytes at %v are "+
				"granted, the table has %d",
				uint64(s.Size), s.Addr, uint64(l.Requested))
		}
		return err == nil
	})
	if err == nil && granted != a.live.Len() {
		err = fmt.Errorf("slabbuddy: invariant W2 (a granted block is a slab or live): %d blocks are "+
			"granted, %d live", granted, a.live.Len())
	}
	return err
}

func (a *Allocator) checkSlots(s blocks.Span, number int32) (err error) {
	own := a.cells.ClassOfSlab(number)
	a.cells.WalkSlab(number, s.Region, func(c alloc.Chunk) bool {
		if class, small := a.cells.ClassOf(c.Requested); c.State == alloc.Live && (!small || own < class) {
			err = fmt.Errorf("slabbuddy: invariant W3 (a slot is of the class of its size or above): %d bytes at %v in class %d",
				uint64(c.Requested), c.Addr, own)
		}
		return err == nil
	})
	return err
}

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span { return a.blocks.CapacitySpan() }
