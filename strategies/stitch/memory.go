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
	stitched             // an sBlock: a range into which memory of segments is mapped a second time
)

// region is a region of the device or a range of its address space.
type region struct {
	addr  device.Addr
	size  device.Size
	kind  kind
	chunk uint32 // the first one; none for an sBlock that is being made or undone

	// mapped is the number of bytes mapped from the start of the range: of an sBlock, or of a
	// segment that could not be made and has no pBlock.
	mapped  device.Size
	handles []device.Handle // of a segment: the handle of each page, zero once it is released
	loose   int             // number of handles of pages that belong to no pBlock
	owner   []uint32        // of a segment: the pBlock of each page

	pieces uint32 // of a segment, the first piece over it; of an sBlock, its first piece

	// Of an sBlock:
	waitsFor uint32 // pBlock in use that blocks the sBlock; none if it is in the map
	waiting  uint32 // next sBlock that waits for the same pBlock
	older    uint32 // of an idle sBlock: the one freed before it
	newer    uint32 // of an idle sBlock: the one freed after it; of an unused row, the next unused row
}

// addRegion adds a region for a reservation and returns its row.
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

// dropRegion removes a region that was released.
func (a *Allocator) dropRegion(i uint32) {
	r := &a.regions[i]
	p, _ := a.order.Search(r.addr)
	a.order.Delete(p)
	*r = region{handles: r.handles[:0], owner: r.owner[:0], newer: a.spareRegion}
	a.spareRegion = i
	a.front.Stats.Regions--
}

// countGranted counts n bytes of memory that the device granted in one call.
func (a *Allocator) countGranted(n device.Size) {
	a.front.Stats.Reserves++
	a.front.Stats.Reserved += n
	a.front.Stats.PeakReserved = max(a.front.Stats.PeakReserved, a.front.Stats.Reserved)
}

// lift counts n bytes of memory as unmapped but still held, until their handles are released.
func (a *Allocator) lift(n device.Size) {
	a.front.Stats.Reserved -= n
	a.front.Stats.Forgotten += n
}

// bytesHeld returns the bytes held from the device.
func (a *Allocator) bytesHeld() device.Size { return a.front.Stats.Reserved + a.front.Stats.Forgotten }

// within reports whether n more bytes are within the limit.
func (a *Allocator) within(n device.Size) bool {
	return a.cfg.Limit == 0 || a.span.Fits(a.bytesHeld()+n, a.cfg.Limit)
}

// obtainSmall reserves a region of n bytes for the small pool and returns its chunk, which is in no
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
	a.countGranted(got.Size)
	i := a.addRegion(got, small)
	h := a.addChunk(got.Addr, device.AlignDown(got.Size, quantum), i)
	a.regions[i].chunk = h
	return h, nil
}

// obtain makes a segment of n bytes and returns its pBlock, which is in no map. It makes two device
// calls for each page and two more. On failure the memory obtained so far is released. If the
// device refuses that too, it is retried whenever memory is released.
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
		_ = a.sweep(i) // if the device refuses, it is retried whenever memory is released
		return none, err
	}
	r.mapped, r.loose = 0, 0
	return h, nil
}

// fill creates the memory of a segment of n bytes and maps it. The handles are loose until all of
// it is accessible.
func (a *Allocator) fill(r *region, n device.Size) error {
	page := a.cfg.ChunkBytes
	// All pages are created before one is mapped, so that the usual failure, lack of memory, is
	// cheap.
	for i := range r.handles {
		h, err := a.vm.CreateHandle(page)
		if err != nil {
			a.front.Stats.ReserveFailures++
			return err
		}
		a.countGranted(page)
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

// giveBack releases the unused memory of a region and returns the first error.
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
	// It is a segment. If the device refuses one page, the others are released all the same.
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

// empty releases the memory of a free pBlock. The pBlock becomes gone and merges with adjacent gone
// chunks; empty returns the result. The sBlocks over it are undone first, because no alias may
// outlive its memory.
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

// loosen releases the handle of a page that is gone.
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

// sweep releases the memory and handles that pages in state gone still have in a segment, and the
// range of the segment once all its pages are gone.
func (a *Allocator) sweep(i uint32) error {
	r := &a.regions[i]
	if r.mapped > 0 {
		if err := a.vm.Unmap(r.addr, r.mapped); err != nil {
			return err
		}
		a.lift(r.mapped)
		r.mapped = 0
	}
	// Loose handles belong to gone pages whose release the device refused, so this walk is rare.
	for page := 0; r.loose > 0 && page < len(r.owner); page++ {
		if r.handles[page] == 0 || a.chunks[r.owner[page]].state != gone {
			continue
		}
		if err := a.loosen(r, uint32(page)); err != nil {
			return err
		}
	}
	// Adjacent gone chunks merge, so all pages are gone if one chunk fills the segment.
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

// giveBackAll releases unused memory of the regions of the kinds from first to last, the highest
// row first, until enough bytes are released. It returns the first error.
func (a *Allocator) giveBackAll(first, last kind, enough device.Size) (failed error) {
	before := a.bytesHeld()
	for i := len(a.regions) - 1; i > 0 && before-a.bytesHeld() < enough; i-- {
		r := &a.regions[i]
		if r.size == 0 || r.kind < first || r.kind > last {
			continue
		}
		failed = cmp.Or(failed, a.giveBack(uint32(i)))
	}
	return failed
}

// reclaim releases free memory for a request of n bytes that the device refused, and reports
// whether it released any. It does nothing if the limit leaves no room even then. Idle sBlocks over
// other memory stay, because they have no memory of their own.
func (a *Allocator) reclaim(n device.Size) bool {
	if a.cfg.Limit != 0 && !a.span.Fits(a.front.Stats.Active+n, a.cfg.Limit) {
		return false
	}
	before := a.bytesHeld()
	_ = a.giveBackAll(small, pages, n) // refused regions stay held
	return a.bytesHeld() < before
}
