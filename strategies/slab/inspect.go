package slab

import (
	"cmp"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
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

func (a *Allocator) Stats() alloc.Stats {
	s := a.front.Stats
	s.NextRegion = a.slices.nextRegion() // the pools determine it
	return s
}

// LargestFree implements [power.Holes]. O(classes).
func (a *Allocator) LargestFree() device.Size {
	if a.front.Closed() {
		return 0
	}
	_, largest := a.slices.freeBytes()
	return max(largest, a.cells.LargestFree())
}

// FreeBytes returns the bytes in free chunks. O(grades).
func (a *Allocator) FreeBytes() device.Size {
	loose, _ := a.slices.freeBytes()
	return loose + a.cells.FreeBytes()
}

func (a *Allocator) MetadataBytes() device.Size {
	if a.front.Closed() {
		return a.slices.held.Bytes()
	}
	return a.live.Bytes() + a.cells.Bytes() + a.slices.hostBytes()
}

// Trim implements [power.Trimmer]. It empties the magazines, makes slabs without a used slot
// slices, and releases regions without a slab.
func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	before := a.front.Stats.Reserved
	a.slices.stuck = nil
	a.cells.Drain()
	a.cells.Shed()
	err := a.slices.trim()
	return before - a.front.Stats.Reserved, cmp.Or(a.slices.stuck, err)
}

// Walk implements [alloc.Inspector]. The class of a slot is the class of its slab; free slices,
// empty slabs and kept regions have none. The unused slices of a region are one chunk. Owner is the
// grade: the rank of the slab size; for kept regions it is one more than the last grade.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		a.slices.held.WalkSlack(yield)
		return
	}
	idle := a.slices.kept.byAddress()
	for i := range a.slices.held.Len() {
		h := a.slices.held.At(i)
		w := a.slices.rowOf(h)
		more := false
		switch {
		case w != nil:
			more = a.walkRow(h, w, yield)
		case len(idle) > 0 && idle[0].Addr == h.Addr:
			more = yield(a.keptChunk(idle[0])) && regions.Excess(h.Region, idle[0].Size, yield)
			idle = idle[1:]
		default:
			more = a.walkSingle(h, yield)
		}
		if !more {
			return
		}
	}
}

// walkRow yields the chunks of a sliced region. It reports whether the walk goes on.
func (a *Allocator) walkRow(h regions.Held, w *row, yield func(alloc.Chunk) bool) bool {
	g, _ := a.slices.find(h.Label)
	owner := ownerOf(h.Label)
	slot := func(c alloc.Chunk) bool {
		c.Owner = owner
		return yield(c)
	}
	for i := 0; i < len(w.slabs); i++ {
		n := w.slabs[i]
		if n != cells.None {
			if !a.cells.WalkSlab(n, h.Addr, slot) {
				return false
			}
			continue
		}
		c := g.chunkOf(w, uint32(i))
		if !slot(c) {
			return false
		}
		i += int(c.Size>>g.shift) - 1
	}
	return regions.Excess(h.Region, device.Size(len(w.slabs))<<g.shift, slot)
}

// ownerOf returns the owner of the chunks of a region from its label.
func ownerOf(label int32) uint8 { return uint8(label & (1<<gradeBits - 1)) }

// chunkOf returns a free slice as a chunk. If it was never used, the chunk includes the slices
// above it.
func (g *grade) chunkOf(w *row, i uint32) alloc.Chunk {
	n := 1
	if i == w.fresh {
		n = len(w.slabs) - int(i)
	}
	return alloc.Chunk{
		Region: w.region.Addr, Addr: w.region.Addr.Add(device.Size(i) << g.shift), Size: device.Size(n) << g.shift,
		Class: alloc.NoClass,
	}
}

// keptChunk returns a kept region as a chunk.
func (a *Allocator) keptChunk(e index.SizeEntry) alloc.Chunk {
	return alloc.Chunk{
		Region: e.Addr, Addr: e.Addr, Size: e.Size, Class: alloc.NoClass, Owner: uint8(len(a.slices.grades)),
	}
}

// walkSingle yields the chunks of a region that is one block, or stale.
func (a *Allocator) walkSingle(h regions.Held, yield func(alloc.Chunk) bool) bool {
	b, ok := a.live.Get(h.Addr)
	if !ok || h.Label != labelDirect {
		return regions.Excess(h.Region, 0, yield)
	}
	c := alloc.Chunk{
		Region: h.Addr, Addr: h.Addr, Size: a.grantedOf(b), State: alloc.Live,
		Requested: b.Requested, Class: alloc.NoClass, Stream: b.Stream, Tag: b.Tag,
	}
	return yield(c) && regions.Excess(h.Region, c.Size, yield)
}

// WalkFree implements [power.FreeWalker]: the free slots and empty slabs, by segment and class, and
// then the free slices and the kept regions.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		return
	}
	regionOf := func(p cells.Piece) device.Addr {
		g, n := a.slices.find(int32(p.Handle))
		return g.rows[n].region.Addr
	}
	if !a.cells.WalkFree(regionOf, func(c alloc.Chunk) bool {
		h, _ := a.slices.held.Find(c.Region)
		c.Owner = ownerOf(h.Label)
		return yield(c)
	}) {
		return
	}
	for i := range a.slices.grades {
		g := &a.slices.grades[i]
		for n := range g.open.All {
			w := &g.rows[n]
			for slice := range w.free.All {
				c := g.chunkOf(w, slice)
				if c.Owner = uint8(i); !yield(c) {
					return
				}
				if slice == w.fresh {
					break
				}
			}
		}
	}
	for e := range a.slices.kept.bySize.All {
		if !yield(a.keptChunk(e)) {
			return
		}
	}
}

// Check implements [alloc.Inspector]. It reads every slot.
func (a *Allocator) Check() error {
	if !a.front.Closed() {
		if err := a.cells.Check(); err != nil {
			return err
		}
		if err := a.checkRows(); err != nil {
			return err
		}
		if err := a.checkSingles(); err != nil {
			return err
		}
		if err := a.checkKept(); err != nil {
			return err
		}
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("slab: invariant C10 (counters match the walk): %w", err)
	}
	return nil
}

func (a *Allocator) checkRows() error {
	taken := 0
	for i := range a.slices.grades {
		n, err := a.checkGrade(i)
		if err != nil {
			return err
		}
		taken += n
	}
	if taken != a.cells.Slabs() {
		return fmt.Errorf("slab: invariant C8 (a slice belongs to at most one slab): %d belong to slabs of %d", taken,
			a.cells.Slabs())
	}
	return nil
}

// checkGrade verifies the slices of one grade and returns the number that slabs have.
func (a *Allocator) checkGrade(at int) (taken int, err error) {
	g := &a.slices.grades[at]
	loose, fresh, cut := 0, 0, 0
	var empty device.Size
	for n := range g.rows {
		w := &g.rows[n]
		if w.region.Size == 0 {
			continue
		}
		cut++
		own := 0
		if left := len(w.slabs) - int(w.fresh); left > 0 {
			if fresh != 0 {
				return 0, fmt.Errorf("slab: invariant C8 (a slice belongs to at most one slab): row %d is not the only one with "+
					"slices that none had", n)
			}
			fresh = left
		}
		for i, slab := range w.slabs {
			if (slab == cells.None) != w.free.Has(uint32(i)) || slab != cells.None && uint32(i) >= w.fresh {
				return 0, fmt.Errorf("slab: invariant C8 (a slice belongs to at most one slab): slice %d of row %d has slab %d",
					i, n, slab)
			}
			if slab == cells.None {
				continue
			}
			own++
			if p := a.cells.Piece(slab); p.Addr != w.region.Addr.Add(device.Size(i)<<g.shift) ||
				int(p.Handle) != n<<gradeBits|at {
				return 0, fmt.Errorf("slab: invariant C8 (a slice belongs to at most one slab): slice %d of row %d, slab %d at %v",
					i, n, slab, p.Addr)
			}
		}
		if own != int(w.taken) || own+w.free.Len() != len(w.slabs) || g.open.Has(uint32(n)) != (w.free.Len() > 0) {
			return 0, fmt.Errorf("slab: invariant C8 (a slice belongs to at most one slab): row %d: %d taken, counted %d", n,
				own, w.taken)
		}
		if own == 0 {
			empty += w.region.Size
		}
		taken, loose = taken+own, loose+w.free.Len()
	}
	if loose != g.loose || fresh != g.fresh || empty != g.pool.Empty() || cut != g.pool.Len() ||
		cut+len(g.spare) != len(g.rows) {
		return 0, fmt.Errorf("slab: invariant C8 (a slice belongs to at most one slab): %d loose, counted %d; %d bytes "+
			"empty, counted %d",
			loose, g.loose, empty, g.pool.Empty())
	}
	return taken, nil
}

func (a *Allocator) checkSingles() error {
	singles, rows := 0, 0
	for i := range a.slices.held.Len() {
		if a.slices.rowOf(a.slices.held.At(i)) != nil {
			rows++
		} else {
			singles++
		}
	}
	singles -= a.slices.held.Stale() + a.slices.kept.bySize.Len()
	for at := range a.live.Range {
		singles--
		if h, ok := a.slices.held.Find(at); !ok || h.Label != labelDirect {
			return fmt.Errorf("slab: invariant C9 (a region is cut, one live block, kept, or stale): block %v", at)
		}
	}
	for i := range a.slices.grades {
		rows -= a.slices.grades[i].pool.Len()
	}
	if singles != 0 || rows != 0 {
		return fmt.Errorf("slab: invariant C9 (a region is cut, one live block, kept, or stale): %d regions too many for "+
			"the blocks, %d for the rows",
			singles, rows)
	}
	return nil
}

func (a *Allocator) checkKept() error {
	k := &a.slices.kept
	if err := k.bySize.Check(); err != nil {
		return fmt.Errorf("slab: invariant C12 (kept regions are counted and by size): %w", err)
	}
	var bytes device.Size
	for e := range k.bySize.All {
		bytes += e.Size
		h, ok := a.slices.held.Find(e.Addr)
		if _, live := a.live.Get(e.Addr); !ok || live || h.Label != labelDirect || e.Size > h.Size {
			return fmt.Errorf("slab: invariant C12 (kept regions are counted and by size): no region without a block at %v",
				e.Addr)
		}
	}
	switch s := a.slices; {
	case bytes != k.bytes:
		return fmt.Errorf("slab: invariant C12 (kept regions are counted and by size): %d bytes, counted %d", bytes,
			k.bytes)
	case bytes != 0 && s.total.Reserved > s.most:
		return fmt.Errorf("slab: invariant C13 (no more is held than was needed at once): %d bytes held, %d needed",
			s.total.Reserved, s.most)
	}
	return nil
}

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span { return a.slices.capacitySpan() }
