package direct

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// maxRequest bounds requests, so that no sum of a few of them overflows.
const maxRequest device.Size = 1 << 60

// Allocator takes every block from the device. Use [New]; it is not safe for concurrent use.
type Allocator struct {
	closed  bool
	live    front.Ledger // a place is not used
	held    regions.Set  // the regions of live blocks, and stale ones; a label is not used
	stats   alloc.Stats
	refusal alloc.Refusal
}

// New returns an allocator over src that holds nothing yet. It never fails.
func New(src device.Source, _ Config) (*Allocator, error) {
	a := &Allocator{}
	a.held = regions.NewSet(src, &a.stats)
	return a, nil
}

// Alloc implements [alloc.Allocator]. It costs a device call.
func (a *Allocator) Alloc(r alloc.Request) (alloc.Block, error) {
	if a.closed {
		return alloc.Block{}, alloc.ErrClosed
	}
	if why := judge(&r); why != alloc.ReasonNone {
		a.refusal = alloc.Refusal{Reason: why, Request: r}
		return alloc.Block{}, alloc.ErrInvalidRequest
	}
	region, err := a.held.Reserve(r.Size, r.Align, 0)
	if err != nil {
		a.stats.OOMs++
		a.refusal = alloc.Refusal{Reason: alloc.ReasonDevice, Request: r, Rounded: r.Size, Asked: r.Size, Device: err}
		return alloc.Block{}, alloc.ErrOutOfMemory
	}
	a.live.Add(region.Addr, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
	a.stats.Granted(r.Size, region.Size)
	return alloc.Block{Addr: region.Addr, Size: region.Size}, nil
}

// judge returns why a request can never be granted, ReasonNone if it can.
func judge(r *alloc.Request) alloc.Reason {
	switch {
	case r.Size == 0:
		return alloc.ReasonZero
	case r.Size > maxRequest:
		return alloc.ReasonTooLarge
	case r.Align != 0 && !device.IsPowerOfTwo(r.Align):
		return alloc.ReasonAlignment
	}
	return alloc.ReasonNone
}

// Free implements [alloc.Allocator]. It costs a device call.
func (a *Allocator) Free(at device.Addr) error {
	if a.closed {
		return alloc.ErrClosed
	}
	b, ok := a.live.Take(at)
	if !ok {
		return alloc.ErrInvalidFree
	}
	h, _ := a.held.Find(at)
	a.stats.Freed(b.Requested, h.Size)
	a.held.Discard(at)
	return nil
}

// Close implements [alloc.Strategy]. Regions go back oldest first. Walk yields each region that the
// device refuses to take back as one chunk of slack.
func (a *Allocator) Close() error {
	a.closed = true
	a.live = front.Ledger{}
	a.stats.Emptied()
	return a.held.ReleaseAll()
}
