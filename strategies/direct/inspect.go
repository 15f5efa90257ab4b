package direct

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

var (
	_ alloc.Strategy = (*Allocator)(nil)
	_ alloc.Holes    = (*Allocator)(nil)
	_ alloc.Trimmer  = (*Allocator)(nil)
	_ alloc.Metered  = (*Allocator)(nil)
	_ alloc.Failure  = (*Allocator)(nil)
	_ alloc.Ceiling  = (*Allocator)(nil)
	_ alloc.Clearer  = (*Allocator)(nil)
)

// Stats implements [alloc.Inspector].
func (a *Allocator) Stats() alloc.Stats { return a.stats }

// ClearStats implements [alloc.Clearer].
func (a *Allocator) ClearStats() { a.stats.Clear() }

// LastRefusal implements [alloc.Failure].
func (a *Allocator) LastRefusal() (alloc.Refusal, bool) {
	return a.refusal, a.refusal.Reason != alloc.ReasonNone
}

// MaxRequest implements [alloc.Ceiling].
func (a *Allocator) MaxRequest() device.Size { return maxRequest }

// LargestFree implements [alloc.Holes]: no chunk is ever free.
func (a *Allocator) LargestFree() device.Size { return 0 }

// MetadataBytes implements [alloc.Metered].
func (a *Allocator) MetadataBytes() device.Size { return a.live.Bytes() + a.held.Bytes() }

// Trim implements [alloc.Trimmer]: stale regions go back.
func (a *Allocator) Trim() (device.Size, error) {
	if a.closed {
		return 0, alloc.ErrClosed
	}
	before := a.stats.Reserved
	err := a.held.Retry()
	return before - a.stats.Reserved, err
}

// Walk implements [alloc.Inspector]. A stale region is one chunk of slack.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	for i := range a.held.Len() {
		h := a.held.At(i)
		used := device.Size(0)
		if b, ok := a.live.Get(h.Addr); ok {
			used = h.Size
			if !yield(alloc.Chunk{
				Region: h.Addr, Addr: h.Addr, Size: h.Size, Requested: b.Requested, State: alloc.Live,
				Class: alloc.NoClass, Stream: b.Stream, Tag: b.Tag,
			}) {
				return
			}
		}
		if !regions.Excess(h.Region, used, yield) {
			return
		}
	}
}

// Check implements [alloc.Inspector]. It looks up every block.
func (a *Allocator) Check() error {
	for at := range a.live.Range {
		if _, ok := a.held.Find(at); !ok {
			return fmt.Errorf("direct: invariant D1 (a region is one live block, or stale): no region starts at block %v", at)
		}
	}
	if live, stale, held := a.live.Len(), a.held.Stale(), a.held.Len(); !a.closed && live+stale != held {
		return fmt.Errorf("direct: invariant D1 (a region is one live block, or stale): %d live blocks, %d stale, %d regions", live, stale, held)
	}
	if err := front.CompareStats(a.stats, a.Walk); err != nil {
		return fmt.Errorf("direct: invariant D2 (counters are what the walk shows): %w", err)
	}
	return nil
}
