package buddy

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
)

var (
	_ alloc.Strategy   = (*Allocator)(nil)
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Trimmer    = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Neighbours = (*Allocator)(nil)
	_ power.Placer     = (*Allocator)(nil)
)

// LargestFree implements [power.Holes]. O(1).
func (a *Allocator) LargestFree() device.Size { return a.blocks.LargestFree() }

func (a *Allocator) MetadataBytes() device.Size { return a.blocks.Bytes() + a.live.Bytes() }

// Walk implements [alloc.Inspector]. Free chunks are the merged free blocks, so two of them may be
// adjacent. The class of a free chunk is the class of its block; a live chunk has none, because it
// may consist of several blocks.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		a.blocks.WalkSlack(yield)
		return
	}
	a.blocks.Spans(a.length, func(s blocks.Span) bool { return yield(a.chunkOf(s)) })
}

// length returns the bytes granted to the live block at an address, or 0.
func (a *Allocator) length(p device.Addr) device.Size {
	if l, ok := a.live.Get(p); ok {
		place, _ := a.blocks.PlaceOf(p)
		return a.blocks.Granted(l.Requested, place)
	}
	return 0
}

func (a *Allocator) chunkOf(s blocks.Span) alloc.Chunk {
	c := alloc.Chunk{Region: s.Region, Addr: s.Addr, Size: s.Size, State: s.State, Class: s.Class}
	if s.State == alloc.Live {
		l, _ := a.live.Get(s.Addr)
		c.Requested, c.Stream, c.Tag = l.Requested, l.Stream, l.Tag
	}
	return c
}

func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	if !a.front.Closed() {
		a.blocks.WalkFree(func(s blocks.Span) bool { return yield(a.chunkOf(s)) })
	}
}

// Check implements [alloc.Inspector]. It reads every record.
func (a *Allocator) Check() error {
	if !a.front.Closed() {
		if err := a.blocks.Check(); err != nil {
			return fmt.Errorf("buddy: %w", err)
		}
		if err := a.checkLive(); err != nil {
			return fmt.Errorf("buddy: %w", err)
		}
	}
	if err := front.CompareStats(a.front.Stats, a.Walk); err != nil {
		return fmt.Errorf("buddy: invariant H9 (counters match the walk): %w", err)
	}
	return nil
}

func (a *Allocator) checkLive() (err error) {
	n := 0
	a.blocks.Spans(a.length, func(s blocks.Span) bool {
		if s.State != alloc.Live {
			return true
		}
		n++
		if size := a.length(s.Addr); size != s.Size {
			err = fmt.Errorf("invariant H1 (memory that is not free is live): %d bytes at %v, a live block of %d",
				uint64(s.Size), s.Addr, uint64(size))
		}
		return err == nil
	})
	if err == nil && n != a.live.Len() {
		err = fmt.Errorf("invariant H1 (memory that is not free is live): %d blocks that are not free, %d live ones", n,
			a.live.Len())
	}
	return err
}

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span { return a.blocks.CapacitySpan() }
