package xdl

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
	buddy "github.com/vramyard/vramyard/strategies/buddy/xdl"
	slab "github.com/vramyard/vramyard/strategies/slab/xdl"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// Allocator is the slab-buddy allocator of X-DeepLearning: a slab and a buddy that share nothing.
// Use [New].
type Allocator struct {
	front.View
	front   front.Front
	cfg     Config
	slab    *slab.Allocator
	buddy   *buddy.Allocator
	direct  front.Ledger // live blocks straight from the device; a place is not used
	regions regions.Set  // of all parts, by address; a label is the owner
}

// Open returns the allocator that c describes: a [Locked] one with Config.Locks.
func Open(src device.Source, c Config) (alloc.Strategy, error) {
	if c.Locks {
		return NewLocked(src, c)
	}
	return New(src, c)
}

// New returns an allocator for one thread over src that holds nothing yet. It fails if c is
// invalid.
func New(src device.Source, c Config) (*Allocator, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return nil, err
	}
	a := &Allocator{cfg: c}
	a.View = a.front.Init(front.Limits{Most: ^device.Size(0)}, func() (largest, bytes device.Size) {
		return a.LargestFree(), a.freeBytes()
	})
	a.regions = regions.NewSet(src, &a.front.Stats)
	if a.slab, err = slab.New(part{&a.regions, slabbuddy.OwnerSlab}, c.slab()); err != nil {
		return nil, fmt.Errorf("slabbuddy: %w", err)
	}
	if a.buddy, err = buddy.New(part{&a.regions, slabbuddy.OwnerBuddy}, c.buddy()); err != nil {
		return nil, fmt.Errorf("slabbuddy: %w", err)
	}
	return a, nil
}

// part is the source of one part: the device, with every region recorded in the set of all parts.
type part struct {
	regions *regions.Set
	owner   uint8
}

func (p part) Reserve(size, align device.Size) (device.Region, error) {
	return p.regions.Reserve(size, align, int32(p.owner))
}

func (p part) Release(a device.Addr) error { return p.regions.Release(a) }

// Alloc implements [alloc.Allocator]. It costs what the part costs that serves the request.
func (a *Allocator) Alloc(r alloc.Request) (b alloc.Block, err error) {
	if a.front.Closed() {
		return alloc.Block{}, alloc.ErrClosed
	}
	switch a.route(r.Size) {
	case slabbuddy.OwnerSlab:
		if b, err = a.slab.Alloc(r); err != nil {
			return alloc.Block{}, a.refused(a.slab, err)
		}
	case slabbuddy.OwnerBuddy:
		if b, err = a.buddy.Alloc(r); err != nil {
			return alloc.Block{}, a.refused(a.buddy, err)
		}
	default:
		if b, err = a.allocDirect(r); err != nil {
			return alloc.Block{}, err
		}
	}
	a.front.Stats.Granted(r.Size, b.Size)
	return b, nil
}

// allocDirect reserves a region for the request alone. The block has exactly the requested bytes;
// the rest is slack.
func (a *Allocator) allocDirect(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	region, err := a.regions.Reserve(r.Size, r.Align, int32(slabbuddy.OwnerDirect))
	if err != nil {
		return alloc.Block{}, a.front.OutOfMemory(&r, 0, r.Size, err)
	}
	a.direct.Add(region.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
	return alloc.Block{Addr: region.Addr, Size: r.Size}, nil
}

// refused adopts the refusal that a part recorded, and returns err.
func (a *Allocator) refused(by power.Failure, err error) error {
	if errors.Is(err, alloc.ErrOutOfMemory) {
		a.front.Stats.OOMs++
	}
	r, _ := by.LastRefusal()
	a.front.SetRefusal(r)
	return err
}

// Free implements [alloc.Allocator]. Each part is tried in turn. The original begins with the slab;
// the buddy begins here, because one look at its regions shows that a block is not its. A block
// straight from the device is released. If the device refuses, its region stays as slack and is
// released later.
func (a *Allocator) Free(p device.Addr) error {
	if a.front.Closed() {
		return alloc.ErrClosed
	}
	requested, granted, err := a.buddy.Take(p)
	if err != nil {
		requested, granted, err = a.slab.Take(p)
	}
	if err != nil {
		requested, err = a.takeDirect(p)
		granted = requested
	}
	if err != nil {
		return err
	}
	a.front.Stats.Freed(requested, granted)
	return nil
}

func (a *Allocator) takeDirect(p device.Addr) (device.Size, error) {
	b, ok := a.direct.Take(p)
	if !ok {
		return 0, alloc.ErrInvalidFree
	}
	a.regions.Discard(p)
	return b.Requested, nil
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields a region that
// the device refuses as one chunk of slack.
func (a *Allocator) Close() error {
	a.front.Close()
	a.slab, a.buddy, a.direct = nil, nil, front.Ledger{}
	return a.regions.ReleaseAll()
}

// route returns the part for a request of n bytes. The slab part refuses a request of none.
func (a *Allocator) route(n device.Size) uint8 {
	switch {
	case n < a.cfg.BlockBytes:
		return slabbuddy.OwnerSlab
	case n < a.cfg.RegionBytes:
		return slabbuddy.OwnerBuddy
	}
	return slabbuddy.OwnerDirect
}
