package stitch

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// kind is the use of a region.
type kind uint8

const (
	small    kind = iota // the small pool
	pages                // a segment: a range with memory of its own
	stitched             // a range onto which memory of segments is mapped a second time: an sBlock
)

// region is a region of the device or a range of its address space.
type region struct {
	addr  device.Addr
	size  device.Size
	kind  kind
	chunk uint32 // the first one; none for an sBlock that is being made or undone

	// mapped are bytes from its start on that memory is mapped at: of an sBlock, or of a segment that
	// could not be made, whose memory no pBlock has.
	mapped  device.Size
	handles []device.Handle // of a segment, of each page; zero if it has none any more
	loose   int             // handles of pages that no pBlock has
	owner   []uint32        // of a segment, the pBlock of each page

	pieces uint32 // of a segment, the first one over it; of an sBlock, its first one

	// Of an sBlock:
	waitsFor uint32 // pBlock in use because of which it cannot be granted; none if it is not known to be
	waiting  uint32 // next sBlock that waits for the same pBlock
	older    uint32 // of an idle sBlock, neighbors in the order of their frees; of a
	newer    uint32 // row that is not in use newer is the next such
}

// addRegion returns a new region for what the device has given.
func (a *Allocator) addRegion(r device.Region, k kind) uint32 {
	i := a.spareRegion
	if i == none {
		i = uint32(len(a.regions))
		a.regions = append(a.regions, region{})
	} else {
		a.spareRegion = a.regions[i].newer
	}
	old := &a.regions[i]
	*old = region{addr: r.Addr, size: r.Size, kind: k, handles: old.handles[:0], owner: old.owner[:0]}
	p, _ := a.order.Search(r.Addr)
	a.order.Insert(p, index.AddrEntry[uint32]{Addr: r.Addr, Value: i})
	a.front.Stats.Regions++
	return i
}

// dropRegion forgets a region that the device has taken back.
func (a *Allocator) dropRegion(i uint32) {
	r := &a.regions[i]
	p, _ := a.order.Search(r.addr)
	a.order.Delete(p)
	*r = region{handles: r.handles[:0], owner: r.owner[:0], newer: a.spareRegion}
	a.spareRegion = i
	a.front.Stats.Regions--
}

// took books bytes of memory that the device has granted in one call.
func (a *Allocator) took(n device.Size) {
	a.front.Stats.Reserves++
	a.front.Stats.Reserved += n
	a.front.Stats.PeakReserved = max(a.front.Stats.PeakReserved, a.front.Stats.Reserved)
}

// lift books bytes of memory that are mapped in no region any more, and held until their handles
// go.
func (a *Allocator) lift(n device.Size) {
	a.front.Stats.Reserved -= n
	a.front.Stats.Forgotten += n
}

// holds returns the bytes that are held from the device.
func (a *Allocator) holds() device.Size { return a.front.Stats.Reserved + a.front.Stats.Forgotten }

// within reports whether n more bytes are within the limit.
func (a *Allocator) within(n device.Size) bool {
	return a.cfg.Limit == 0 || a.holds() <= a.cfg.Limit && n <= a.cfg.Limit-a.holds()
}

// obtainSmall gets a region of n bytes for the small pool and returns its chunk, which is in no
// map.
func (a *Allocator) obtainSmall(n device.Size) (uint32, error) {
	a.asked = n
	if !a.within(n) {
		return none, regions.ErrLimit
	}
	got, err := a.src.Reserve(n, regions.Align(n))
	if err != nil {
		a.front.Stats.ReserveFailures++
		return none, err
	}
	a.took(got.Size)
	i := a.addRegion(got, small)
	h := a.addChunk(got.Addr, device.AlignDown(got.Size, quantum), i)
	a.regions[i].chunk = h
	return h, nil
}

// obtain gets a segment of n bytes and returns its pBlock, which is in no map. It makes two calls
// for each page and two more. On failure nothing is held that was not before, unless the device
// refuses to take it back as well: then it is tried again whenever memory is given back.
func (a *Allocator) obtain(n device.Size) (uint32, error) {
	a.asked = n
	if !a.within(n) {
		return none, regions.ErrLimit
	}
	got, err := a.vm.ReserveRange(n, a.cfg.ChunkBytes, 0)
	if err != nil {
		return none, err
	}
	i := a.addRegion(got, pages)
	h := a.addChunk(got.Addr, n, i)
	r, count := &a.regions[i], int(n>>a.pageShift)
	r.chunk = h
	r.handles = slices.Grow(r.handles, count)[:count]
	r.owner = slices.Grow(r.owner, count)[:count]
	clear(r.handles)
	a.paint(h, got.Addr, n)
	if err := a.fill(r, n); err != nil {
		a.chunks[h].state = gone
		a.lift(device.Size(r.loose)<<a.pageShift - r.mapped)
		_ = a.sweep(i) // if the device refuses, it is tried again whenever memory is given back
		return none, err
	}
	r.mapped, r.loose = 0, 0
	return h, nil
}

// fill creates the memory of a segment of n bytes and maps it. Until all is done its handles are
// loose.
func (a *Allocator) fill(r *region, n device.Size) error {
	page := a.cfg.ChunkBytes
	// All are created before one is mapped, so that running out of memory, the usual failure, is
	// cheap.
	for i := range r.handles {
		h, err := a.vm.CreateHandle(page)
		if err != nil {
			a.front.Stats.ReserveFailures++
			return err
		}
		a.took(page)
		r.handles[i] = h
		r.loose++
	}
	for _, h := range r.handles {
		if err := a.vm.Map(r.addr.Add(r.mapped), page, h, 0); err != nil {
			return err
		}
		r.mapped += page
	}
	return a.vm.SetAccess(r.addr, n, device.AccessReadWrite)
}

// giveBack gives back what of a region is not in use, and returns the first error.
func (a *Allocator) giveBack(i uint32) error {
	r := &a.regions[i]
	switch c := &a.chunks[r.chunk]; r.kind {
	case small:
		if c.state != free || c.next != none {
			return nil
		}
		if err := a.src.Release(r.addr); err != nil {
			return err
		}
		a.front.Stats.Releases++
		a.front.Stats.Reserved -= r.size
		a.remove(r.chunk)
		a.dropChunk(r.chunk)
		a.dropRegion(i)
		return nil
	case stitched:
		if r.chunk != none && c.state != idle {
			return nil
		}
		return a.undo(i)
	}
	// The rest is a segment. A page that the device keeps does not stop the others.
	var first error
	for h := r.chunk; h != none; h = a.chunks[h].next {
		if a.chunks[h].state != free {
			continue
		}
		var err error
		if h, err = a.empty(h); err != nil && first == nil {
			first = err
		}
	}
	first = cmp.Or(first, a.sweep(i))
	return first
}

// empty takes the memory away from a free pBlock, which is gone then, and returns the chunk that it
// is in. The sBlocks over it are undone before, because no alias may outlive its memory.
func (a *Allocator) empty(h uint32) (uint32, error) {
	c := &a.chunks[h]
	r := &a.regions[c.region]
	from := uint32(c.addr.Sub(r.addr) >> a.pageShift)
	to := from + uint32(c.size>>a.pageShift)
	if err := a.uncover(r, from, to); err != nil {
		return h, err
	}
	if err := a.vm.Unmap(c.addr, c.size); err != nil {
		return h, err
	}
	a.lift(c.size)
	a.remove(h)
	c.state = gone
	var first error
	for page := from; page < to; page++ {
		r.loose++
		first = cmp.Or(first, a.loosen(r, page))
	}
	if next := c.next; next != none && a.chunks[next].state == gone {
		h = a.join(h, next)
	}
	if prev := a.chunks[h].prev; prev != none && a.chunks[prev].state == gone {
		h = a.join(prev, h)
	}
	return h, first
}

// loosen gives back the handle of a page that is gone.
func (a *Allocator) loosen(r *region, page uint32) error {
	if err := a.vm.ReleaseHandle(r.handles[page]); err != nil {
		return err
	}
	r.handles[page] = 0
	r.loose--
	a.front.Stats.Releases++
	a.front.Stats.Forgotten -= a.cfg.ChunkBytes
	return nil
}

// sweep gives back what pages that are gone have left of a segment, and its range once all of them
// are.
func (a *Allocator) sweep(i uint32) error {
	r := &a.regions[i]
	if r.mapped > 0 {
		if err := a.vm.Unmap(r.addr, r.mapped); err != nil {
			return err
		}
		a.lift(r.mapped)
		r.mapped = 0
	}
	// Loose are the handles of pages that are gone, and there are few, so the walk seldom happens.
	for page := 0; r.loose > 0 && page < len(r.owner); page++ {
		if r.handles[page] == 0 || a.chunks[r.owner[page]].state != gone {
			continue
		}
		if err := a.loosen(r, uint32(page)); err != nil {
			return err
		}
	}
	// Chunks that are gone merge, so the segment is gone if one fills it.
	if c := &a.chunks[r.chunk]; c.state != gone || c.next != none {
		return nil
	}
	if err := a.vm.ReleaseRange(r.addr); err != nil {
		return err
	}
	a.dropChunk(r.chunk)
	a.dropRegion(i)
	return nil
}

// giveBackAll gives back regions of the kinds from first to last, the newest row first, until that
// has made enough bytes of memory. It returns the first error.
func (a *Allocator) giveBackAll(first, last kind, enough device.Size) (failed error) {
	before := a.holds()
	for i := len(a.regions) - 1; i > 0 && before-a.holds() < enough; i-- {
		r := &a.regions[i]
		if r.size == 0 || r.kind < first || r.kind > last {
			continue
		}
		failed = cmp.Or(failed, a.giveBack(uint32(i)))
	}
	return failed
}

// reclaim gives back free memory for a request of n bytes that the device has refused, and reports
// whether that has made any. There is no point in it if the limit leaves no room all the same. Idle
// sBlocks over other memory stay: they have none of their own.
func (a *Allocator) reclaim(n device.Size) bool {
	if a.cfg.Limit != 0 && (n > a.cfg.Limit || a.front.Stats.Active > a.cfg.Limit-n) {
		return false
	}
	before := a.holds()
	_ = a.giveBackAll(small, pages, n) // refused regions stay held
	return a.holds() < before
}
