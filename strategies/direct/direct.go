package direct

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// maxRequest bounds requests, so that sums of a few cannot overflow.
const maxRequest device.Size = 1 << 60

// Allocator takes every block from the device. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	front.View
	front front.Front
	live  front.Ledger // the place is unused
	held  regions.Set  // the regions of live blocks, and stale ones; the label is unused
}

// New returns an allocator over src that holds nothing yet. It never fails.
func New(src device.Source, _ Config) (*Allocator, error) {
	a := &Allocator{}
	a.View = a.front.Init(front.Limits{Most: maxRequest}, func() (largest, bytes device.Size) { return 0, 0 })
	a.held = regions.NewSet(src, &a.front.Stats)
	return a, nil
}

// Alloc implements [alloc.Allocator]. It costs a device call.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if !a.front.Accepts(&r) {
		return alloc.Block{}, a.front.Refuse(&r)
	}
	region, err := a.held.Reserve(r.Size, r.Align, 0)
	if err != nil {
		return alloc.Block{}, a.front.OutOfMemory(&r, r.Size, r.Size, err)
	}
	a.live.Add(region.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
	a.front.Stats.Granted(r.Size, region.Size)
	return alloc.Block{Addr: region.Addr, Size: region.Size}, nil
}

// Free implements [alloc.Allocator]. It costs a device call.
func (a *Allocator) Free(at device.Addr) error {
	b, ok := a.live.Take(at)
	if !ok {
		return a.front.NoBlock()
	}
	h, _ := a.held.Find(at)
	a.front.Stats.Freed(b.Requested, h.Size)
	a.held.Discard(at)
	return nil
}

// Close implements [alloc.Strategy]. Regions are released oldest first. Walk yields each region
// that the device refuses to release as one chunk of slack.
func (a *Allocator) Close() error {
	a.front.Close()
	a.live = front.Ledger{}
	return a.held.ReleaseAll()
}
