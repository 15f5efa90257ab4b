package direct

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

var (
	_ alloc.Strategy = (*Allocator)(nil)
	_ power.Holes    = (*Allocator)(nil)
	_ power.Trimmer  = (*Allocator)(nil)
	_ power.Metered  = (*Allocator)(nil)
	_ power.Locator  = (*Allocator)(nil)
)

// LargestFree implements [power.Holes]: no chunk is ever free.
func (a *Allocator) LargestFree() device.Size { return 0 }

func (a *Allocator) MetadataBytes() device.Size { return a.live.Bytes() + a.held.Bytes() }

// Trim implements [power.Trimmer]: it releases stale regions.
func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	before := a.front.Stats.Reserved
	err := a.held.Retry()
	return before - a.front.Stats.Reserved, err
}

// Walk implements [alloc.Inspector]. A stale region is one chunk of slack.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	for i := range a.held.Len() {
		h := a.held.At(i)
		used := device.Size(0)
		if b, ok := a.live.Get(h.Addr); ok {
			used = h.Size
			if !yield(show(h, b)) {
				return
			}
		}
		if !regions.Excess(h.Region, used, yield) {
			return
		}
	}
}

// show returns a region that is a live block as Walk shows it.
func show(h regions.Held, b front.LiveBlock) alloc.Chunk {
	return alloc.Chunk{
		Region: h.Addr, Addr: h.Addr, Size: h.Size, Requested: b.Requested, State: alloc.Live,
		Class: alloc.NoClass, Stream: b.Stream, Tag: b.Tag,
	}
}

// BlockAt implements [power.Locator]. O(1).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	b, ok := a.live.Get(at)
	if !ok {
		return alloc.Chunk{}, a.front.NoBlock()
	}
	h, _ := a.held.Find(at)
	return show(h, b), nil
}

// Check implements [alloc.Inspector]. It looks up every block.
func (a *Allocator) Check() error {
	for at := range a.live.Range {
		if _, ok := a.held.Find(at); !ok {
			return fmt.Errorf("direct: invariant D1 (a region is one live block, or stale): no region starts at block %v", at)
		}
	}
	if live, stale, held := a.live.Len(), a.held.Stale(), a.held.Len(); !a.front.Closed() && live+stale != held {
		return fmt.Errorf("direct: invariant D1 (a region is one live block, or stale): %d live blocks, %d stale, %d regions",
			live, stale, held)
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("direct: invariant D2 (counters match the walk): %w", err)
	}
	return nil
}

// CapacitySpan implements [power.Spanned]: only answers of the device depend on the capacity.
func (a *Allocator) CapacitySpan() device.Span { return device.Span{} }
