package bfc

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
)

// Allocator is a best-fit allocator with coalescing. It is not safe for concurrent use.
type Allocator struct {
	front.View
	front front.Front

	src   device.Source
	cfg   Config
	waste device.Size // a block that would waste this much is split off

	chunks  chunkTable
	regions regionTable
	live    index.AddrMap            // starts of live chunks to handles
	bins    [numOwners]index.SizeMap // free chunks in best-fit order, by owner

	cur         device.Size // size the next region is meant to have
	backpedaled bool        // variant 2016: the one episode of smaller requests is over

	span     device.Span // limits with which every decision so far would have been the same
	lastID   uint64      // allocation ID of the last grant
	clock    uint64      // counts of frees handed out
	frontier uint64      // chunks freed before this count are safe
	queue    queue       // freed chunks that wait for the frontier

	placer *forecast.Placer // made when it is asked for
}

var (
	_ alloc.Strategy   = (*Allocator)(nil)
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Trimmer    = (*Allocator)(nil)
	_ power.Frontier   = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Reporter   = (*Allocator)(nil)
)

// New returns an allocator over src. It takes nothing from the device yet. It fails if the
// configuration is invalid, or if the limit follows the device and that does not return its memory.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	if c, err = c.onDevice(src); err != nil {
		return nil, err
	}
	a := &Allocator{src: src, cfg: c, live: index.NewAddrMap(), waste: wasteLimit(c), cur: firstRegion(c)}
	if !c.AllowGrowth || c.FragmentationFraction > 0 || !a.span.Fits(mostFirst, c.Limit) {
		a.span.Pin(c.Limit)
	}
	if c.followsDevice() {
		a.span.Pin(0) // the limit follows another rule
	}
	a.chunks.spare = none
	for owner := range a.bins {
		a.bins[owner] = index.NewSizeMap(unit)
	}
	if c.Timing {
		a.chunks.freedAt, a.chunks.marks = []uint64{}, []mark{} // not nil: the columns exist
	}
	if c.AllocationIDs {
		a.chunks.ids = []uint64{}
	}
	limits := front.Limits{Most: maxRequest, Align: unit, Above: power.ReasonOverflow, Null: true}
	if c.Variant == V2026 {
		limits.Align = 0
	}
	a.View = a.front.Init(limits, func() (largest, bytes device.Size) {
		return a.LargestFree(), a.front.Stats.Reserved - a.front.Stats.Active
	})
	a.front.Stats.Limit = c.Limit
	return a, nil
}

// Alloc implements [alloc.Allocator]. It costs O(log chunks), and O(chunks that are large
// enough but misplaced or too new) for an alignment above 256 or a bound on the count.
//
// A refused request leaves live blocks alone. As in the original, it may have doubled NextRegion,
// taken a region that did not serve, merged unsafe chunks by force or released regions without live
// blocks.
//
// The order of the steps affects addresses: the sweep precedes the search, so the search sees the
// chunks below the frontier already merged.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	w := a.demandOf(&r)
	if a.queue.n > 0 {
		a.sweep(0)
	}
	h := a.find(w)
	if h == none {
		var why power.Refusal
		if h, why = a.findMore(w); h == none {
			why.Request, why.Rounded = r, w.size
			a.front.SetRefusal(why)
			a.front.Stats.OOMs++
			return alloc.Block{}, alloc.ErrOutOfMemory
		}
	}
	return a.grant(h, &r), nil
}

// demand holds the search criteria of a request.
type demand struct {
	size   device.Size // rounded up
	align  device.Size // at least unit
	before uint64      // newest count allowed, 0 for any
	owner  uint8       // end of a two-ended arena
	plain  bool        // nothing but the size matters
}

// demandOf returns the search criteria of a request. An arena without ends has no owners. One with
// ends serves a request without a hint from the lower.
func (a *Allocator) demandOf(r *alloc.Request) demand {
	w := demand{size: roundUp(r.Size), align: max(r.Align, unit), before: r.Before}
	if a.cfg.Spatial {
		w.owner = OwnerLower
		if r.Hint == alloc.HintHigh {
			w.owner = OwnerUpper
		}
	}
	w.plain = w.align == unit && w.before == 0 && w.owner == OwnerNone
	return w
}

// grant makes the block of a request from a free chunk that is in no bin.
//
// Precondition: the chunk has the size to grant.
// Postcondition: invariants B5, B7 and B8 hold for it.
func (a *Allocator) grant(h handle, r *alloc.Request) alloc.Block {
	c := &a.chunks.rows[h]
	c.tag = c.tag.withState(live)
	a.lastID++
	slack := c.size - r.Size
	c.slack = uint32(slack)
	if slack >= device.Size(wideSlack) || r.Tag|uint64(r.Stream) != 0 || a.chunks.annotated() {
		a.annotate(h, r)
	}
	a.regions.occupy(a.regionOf(h))
	if !a.live.Dropped() {
		a.live.Put(c.addr, h+1, a.chunks.addrOf)
	}
	a.front.Stats.Granted(r.Size, c.size)
	return alloc.Block{Addr: c.addr, Size: c.size, Ref: h + 1}
}

// annotate stores in the columns what most granted chunks lack.
func (a *Allocator) annotate(h handle, r *alloc.Request) {
	a.chunks.setRequested(h, r.Size)
	a.chunks.setLabel(h, label{r.Tag, r.Stream})
	a.chunks.setID(h, a.lastID)
	if a.cfg.Timing {
		a.suspect(h)
		a.chunks.freedAt[h] = 0
	}
}

// Free implements [alloc.Allocator]. Address 0 is ignored, as in the original. It costs O(log
// chunks). With timing the chunk is neither merged nor returned to the gap: other streams may still
// use it.
func (a *Allocator) Free(at device.Addr) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	a.reindex()
	name := a.live.First(at)
	for name != index.NoHandle && a.chunks.rows[name-1].addr != at {
		name = a.live.Next(name)
	}
	if name == index.NoHandle {
		return a.front.NothingFreed(at)
	}
	a.live.Unlink(at, name)
	a.free(name - 1)
	return nil
}

// FreeRef implements [power.Referenced]. It costs what Free costs, without the search.
func (a *Allocator) FreeRef(b alloc.Block) error {
	h := b.Ref - 1
	switch {
	case b.Ref == index.NoHandle:
		return a.Free(b.Addr)
	case a.front.Closed():
		return alloc.ErrClosed
	case int(h) >= len(a.chunks.rows) || a.chunks.rows[h].addr != b.Addr || a.chunks.rows[h].tag.state() != live:
		return alloc.ErrInvalidFree
	}
	if !a.live.Dropped() {
		a.live.UnlinkRef(b.Addr, b.Ref)
	}
	a.free(h)
	return nil
}

// free frees a live chunk that the map of live chunks no longer has.
func (a *Allocator) free(h handle) {
	c := &a.chunks.rows[h]
	a.front.Stats.Freed(a.chunks.requested(h), c.size)
	c.tag = c.tag.withState(free)
	a.regions.vacate(a.regionOf(h))
	if a.cfg.Timing {
		a.clock++
		a.chunks.freedAt[h] = a.clock
		a.shelve(h)
		a.enqueue(h)
		return
	}
	if a.cfg.Spatial {
		a.returnToGap(h)
	}
	if a.isFree(c.next) || a.isFree(c.prev) { // most freed chunks have no free neighbor
		h = a.coalesce(h, false)
	}
	a.shelve(h)
}
