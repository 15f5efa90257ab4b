package caching

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/index"
)

var (
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// FreeNeighbours implements [power.Neighbours]. A segment has one stream and pool, so adjacent free
// blocks coalesce with the block; pending and unmapped ones do not. A block with other streams
// would be pending after the free. O(1).
func (a *Allocator) FreeNeighbours(at device.Addr) (below, above device.Size) {
	if link, err := a.find(at); err == nil && a.rows[*link].home&usedBit == 0 {
		b := &a.rows[*link]
		below, above = a.freeBytes(b.prev), a.freeBytes(b.next)
	}
	return below, above
}

// freeBytes returns the size of a block if it is a free one, else 0.
func (t *table) freeBytes(h handle) device.Size {
	if t.is(h, free) {
		return t.rows[h].size
	}
	return 0
}

// CanPlace implements [power.Placer]: whether a block of the pool, stream and kind of the request
// will serve. Pools with use_on_oom are left out, and that segments which become free go back to
// the device, which may give others for them. It costs O(chunks log addresses) with a split size,
// else O(addresses log addresses) and the blocks of the runs.
func (a *Allocator) CanPlace(r alloc.Request, freed []device.Addr) bool {
	if a.placer == nil {
		a.placer = &forecast.Placer{Most: mostRequest, Promises: a.plan.promises(a.cfg.Rules, a.cfg.Mended),
			Freed: a.foreseen}
		a.placer.Promises.Serves = func(c alloc.Chunk, r alloc.Request) bool {
			return c.Pool == a.poolOf(r.Stream).id && a.set.serves(c, r)
		}
	}
	// Without expandable_segments, which were turned off, blocks of such segments do not serve.
	if a.set.maxSplit == noLimit && a.set.grew == a.set.expandable {
		return !a.front.Closed() && a.placer.Legal(r) && a.reaches(r, freed)
	}
	// Among segments that grow a lookup may prefer a block that reaches less far, and refuse it as too
	// large to be split.
	return !a.front.Closed() && !a.set.expandable && a.placer.CanPlace(a.Walk, r, freed)
}

// reaches is CanPlace where every free block that is large enough serves: it looks at the index of
// the shelf, and at the runs of free blocks that the freed ones belong to.
func (a *Allocator) reaches(r alloc.Request, freed []device.Addr) bool {
	n, kind := a.set.round(r.Size), uint32(large)
	if isSmall(n) {
		kind = small
	}
	shelves := a.poolOf(r.Stream).sides[kind].shelves
	i := slices.IndexFunc(shelves, func(sh *shelf) bool { return sh.stream == r.Stream })
	if i < 0 {
		return false // it has no blocks
	}
	sh := shelves[i]
	if sh.free.Ceil(n) != index.NoEntry {
		return true
	}
	freed = slices.Clone(freed)
	slices.Sort(freed)
	becomesFree := func(h handle) bool {
		b := &a.rows[h]
		if b.state() == free {
			return true
		}
		_, found := slices.BinarySearch(freed, b.addr)
		return found && b.state() == live && b.home&usedBit == 0
	}
	var end device.Addr // of the last run
	for _, at := range freed {
		if at < end {
			continue
		}
		link, err := a.find(at)
		if err != nil || a.rows[*link].home>>shelfBit != sh.id || !becomesFree(*link) {
			continue
		}
		b := &a.rows[*link]
		size := b.size
		for h := b.prev; becomesFree(h); h = a.rows[h].prev {
			size += a.rows[h].size
		}
		h := b.next
		for end = b.end(); becomesFree(h); h = a.rows[h].next {
			size, end = size+a.rows[h].size, a.rows[h].end()
		}
		if size >= n {
			return true
		}
	}
	return false
}

// foreseen yields what a live block becomes when it is freed: nothing if other streams use it.
func (a *Allocator) foreseen(c alloc.Chunk, yield func(alloc.Chunk)) {
	if link, err := a.find(c.Addr); err == nil && a.rows[*link].home&usedBit == 0 {
		yield(c)
	}
}
