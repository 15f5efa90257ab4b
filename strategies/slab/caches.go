package slab

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// maxRequest bounds requests, so that sums and roundings of a few of them do not overflow.
const maxRequest device.Size = 1 << 60

// Caches is the allocator: [Cells] over slices of regions, and a region of
// its own for each block that is larger than any class. Use [New].
type Caches struct {
	closed  bool
	cells   *Cells
	slices  *slicer
	live    front.Ledger // live blocks that are regions of their own
	cfg     Config
	stats   alloc.Stats
	refusal alloc.Refusal
}

// New returns an allocator over src that holds nothing yet. It fails if c is invalid.
func New(src device.Source, c Config) (*Caches, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Caches{cfg: c}
	a.slices = newSlicer(src, c, &a.stats)
	if a.cells, err = NewCells(a.slices, c.cells()); err != nil {
		return nil, err
	}
	return a, nil
}

// Alloc implements [alloc.Allocator]. It costs O(1), and a device call for a request above
// the largest class or if a region is needed.
func (a *Caches) Alloc(r alloc.Request) (alloc.Block, error) {
	if a.closed {
		return alloc.Block{}, alloc.ErrClosed
	}
	class, ok := a.cells.ClassOf(r.Size)
	if !ok || r.Align != 0 {
		if why := a.judge(r); why != alloc.ReasonNone {
			return alloc.Block{}, a.refuse(r, why)
		}
		if class, ok = a.cells.ClassFor(r.Size, r.Align); !ok {
			return a.allocDirect(r)
		}
	}
	segment := a.cells.Segment(r.Stream)
	p, ok := a.cells.Grab(class, segment, &r, true)
	if !ok {
		if p, ok = a.reclaim(class, segment, &r); !ok {
			return alloc.Block{}, a.outOfMemory(r, a.slices.asked, a.slices.err)
		}
	}
	b := alloc.Block{Addr: p, Size: a.cells.Slot(class)}
	a.stats.Granted(r.Size, b.Size)
	return b, nil
}

// reclaim looks for a slot once more after the device refused a region: when magazines are
// empty, when slabs without a used slot are slices again, and when the regions of other
// grades in which that leaves no slab are the device's.
func (a *Caches) reclaim(class, segment int, r *alloc.Request) (p device.Addr, ok bool) {
	before := a.stats.Releases
	if a.cells.Drain() {
		if p, ok = a.cells.Grab(class, segment, r, false); ok {
			return p, true
		}
	}
	if a.cells.Shed() > 0 {
		if p, ok = a.cells.Grab(class, segment, r, false); ok {
			return p, true
		}
	}
	if a.giveUp(before) {
		return a.cells.Grab(class, segment, r, true)
	}
	return 0, false
}

// allocDirect takes a region for the request alone, of whole quanta. What the device gives
// beyond them is slack.
func (a *Caches) allocDirect(r alloc.Request) (alloc.Block, error) {
	size := device.AlignUp(r.Size, a.cfg.Quantum)
	align := max(r.Align, a.cfg.Quantum)
	region, err := a.slices.reserve(size, align, labelDirect)
	if err != nil {
		before := a.stats.Releases
		a.cells.Drain()
		a.cells.Shed()
		if a.giveUp(before) {
			region, err = a.slices.reserve(size, align, labelDirect)
		}
	}
	if err != nil {
		return alloc.Block{}, a.outOfMemory(r, size, err)
	}
	a.live.Add(region.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
	a.stats.Granted(r.Size, size)
	return alloc.Block{Addr: region.Addr, Size: size}, nil
}

// giveUp gives the regions without a slab back to the device, and reports whether any have
// gone back since there were so many releases.
func (a *Caches) giveUp(releases uint64) bool {
	if a.slices.empty() > 0 || a.slices.held.Stale() > 0 {
		_ = a.slices.trim() // what the device does not take back stays
	}
	return a.stats.Releases != releases
}

// Free implements [alloc.Allocator]. It costs O(1). A block with a region of its own goes
// back to the device. If the device refuses, the region stays as slack until Trim, or a
// request that finds no memory, releases it.
func (a *Caches) Free(p device.Addr) error {
	if a.closed {
		return alloc.ErrClosed
	}
	requested, size, ok := a.cells.Return(p)
	if !ok {
		return a.freeDirect(p)
	}
	a.stats.Freed(requested, size)
	return nil
}

// freeDirect is free of a block that is no slot, if there is one: its region goes back to the
// device.
func (a *Caches) freeDirect(p device.Addr) error {
	b, ok := a.live.Take(p)
	if !ok {
		return alloc.ErrInvalidFree
	}
	a.stats.Freed(b.Requested, device.AlignUp(b.Requested, a.cfg.Quantum))
	a.slices.held.Discard(p)
	return nil
}

// Close implements [alloc.Strategy]. Regions go back oldest first. Of what the device
// refuses to take back, Walk yields each region as one chunk of slack.
func (a *Caches) Close() error {
	a.closed = true
	a.cells, a.live = nil, front.Ledger{}
	a.stats.Emptied()
	return a.slices.held.ReleaseAll()
}

// judge returns why a request can never be granted, ReasonNone if it can.
func (a *Caches) judge(r alloc.Request) alloc.Reason {
	switch {
	case r.Size == 0:
		return alloc.ReasonZero
	case r.Size > maxRequest:
		return alloc.ReasonTooLarge
	case r.Align != 0 && (!device.IsPowerOfTwo(r.Align) || r.Align > a.cfg.align()):
		return alloc.ReasonAlignment
	}
	return alloc.ReasonNone
}

// refuse records a request that can never be granted.
func (a *Caches) refuse(r alloc.Request, why alloc.Reason) error {
	a.refusal = alloc.Refusal{Reason: why, Request: r, LargestHole: a.largestFree(), Free: a.FreeBytes()}
	return alloc.ErrInvalidRequest
}

// outOfMemory records a request for which there was no region.
func (a *Caches) outOfMemory(r alloc.Request, asked device.Size, err error) error {
	a.stats.OOMs++
	a.refusal = alloc.Refusal{Request: r, LargestHole: a.largestFree(), Free: a.FreeBytes()}
	regions.Explain(&a.refusal, asked, err)
	return alloc.ErrOutOfMemory
}
