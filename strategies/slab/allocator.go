package slab

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// maxRequest bounds requests, so that sums and roundings of a few of them do not overflow.
const maxRequest device.Size = 1 << 60

// Allocator is a slab allocator: a cells engine over slices of regions, and a region of its own for
// each block that is larger than any class. Use [New].
type Allocator struct {
	front.View
	front  front.Front
	cells  *cells.Engine
	slices *slicer
	live   front.Ledger // live blocks that are regions of their own
	cfg    Config
}

// New returns an allocator over src that holds nothing yet. It fails if c is invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c}
	a.View = a.front.Init(front.Limits{Most: maxRequest, Align: c.align()}, func() (largest, bytes device.Size) {
		return a.LargestFree(), a.FreeBytes()
	})
	a.slices = newSlicer(src, c, &a.front.Stats)
	if a.cells, err = cells.New(a.slices, c.cells()); err != nil {
		return nil, err
	}
	return a, nil
}

// Alloc implements [alloc.Allocator]. It costs O(1), and device calls if a region is needed: for
// slices, or for a request above the largest class that no kept region serves.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if a.front.Closed() {
		return alloc.Block{}, alloc.ErrClosed
	}
	class, ok := a.cells.ClassOf(r.Size)
	if !ok || r.Align != 0 {
		if !a.front.Accepts(&r) {
			return alloc.Block{}, a.front.Refuse(&r)
		}
		if class, ok = a.cells.ClassFor(r.Size, r.Align); !ok {
			return a.allocDirect(r)
		}
	}
	segment := a.cells.Segment(r.Stream)
	p, ok := a.cells.Grab(class, segment, &r, true)
	if !ok {
		if p, ok = a.reclaim(class, segment, &r); !ok {
			return alloc.Block{}, a.front.OutOfMemory(&r, 0, a.slices.asked, a.slices.err)
		}
	}
	b := alloc.Block{Addr: p, Size: a.cells.Slot(class)}
	a.front.Stats.Granted(r.Size, b.Size)
	return b, nil
}

// reclaim tries again after the device refused a region: with empty magazines, with empty slabs as
// slices, and with the regions of other grades released.
func (a *Allocator) reclaim(class, segment int, r *alloc.Request) (p device.Addr, ok bool) {
	before := a.front.Stats.Releases
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

// allocDirect serves a request by a region for it alone, in whole quanta. What the device rounds up
// is slack.
func (a *Allocator) allocDirect(r alloc.Request) (alloc.Block, error) {
	size := device.AlignUp(r.Size, a.cfg.Quantum)
	align := max(r.Align, a.cfg.Quantum)
	if a.cfg.LargeWaste != 0 {
		align = a.cfg.align() // so that the region serves every later request
	}
	at, granted, err := a.slices.single(size, align)
	if err != nil {
		before := a.front.Stats.Releases
		a.cells.Drain()
		a.cells.Shed()
		if a.giveUp(before) {
			at, granted, err = a.slices.single(size, align)
		}
	}
	if err != nil {
		return alloc.Block{}, a.front.OutOfMemory(&r, 0, size, err)
	}
	b := front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag, Place: uint64(granted - size)}
	a.live.Add(at, b)
	a.front.Stats.Granted(r.Size, granted)
	return alloc.Block{Addr: at, Size: granted}, nil
}

// giveUp releases the regions without a slab, and reports whether any were released since the count
// was releases.
func (a *Allocator) giveUp(releases uint64) bool {
	if a.slices.empty() > 0 || a.slices.held.Stale() > 0 {
		_ = a.slices.trim() // refused regions stay held
	}
	return a.front.Stats.Releases != releases
}

// Free implements [alloc.Allocator]. It costs O(1). A region of a single block goes back to the
// device unless it is kept. If the device refuses, the region stays as slack until Trim, or a
// request that finds no memory, releases it.
func (a *Allocator) Free(p device.Addr) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	requested, size, ok := a.cells.Return(p)
	if !ok {
		return a.freeDirect(p)
	}
	a.front.Stats.Freed(requested, size)
	return nil
}

// grantedOf returns the bytes of a block with a region of its own: the request in whole quanta, and
// what a kept region had beyond it.
func (a *Allocator) grantedOf(b front.LiveBlock) device.Size {
	return device.AlignUp(b.Requested, a.cfg.Quantum) + device.Size(b.Place)
}

// freeDirect frees a block with a region of its own.
func (a *Allocator) freeDirect(p device.Addr) error {
	b, ok := a.live.Take(p)
	if !ok {
		return alloc.ErrInvalidFree
	}
	granted := a.grantedOf(b)
	a.front.Stats.Freed(b.Requested, granted)
	if a.cfg.LargeWaste != 0 {
		a.slices.kept.add(p, granted)
		return nil
	}
	a.slices.held.Discard(p)
	return nil
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields a region that
// the device refuses as one chunk of slack.
func (a *Allocator) Close() error {
	a.front.Close()
	a.cells, a.live = nil, front.Ledger{}
	return a.slices.held.ReleaseAll()
}
