package async

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/streampool"
)

// The owners of free chunks, as they appear in alloc.Chunk.Owner.
const (
	OwnerNone   uint8 = iota // unowned: any stream may take it
	OwnerStream              // only the stream of the chunk may take it at once
)

var (
	_ power.Holes   = (*Allocator)(nil)
	_ power.Metered = (*Allocator)(nil)
	_ power.Locator = (*Allocator)(nil)
)

// Stats implements [alloc.Inspector]. O(1).
func (a *Allocator) Stats() alloc.Stats {
	s, p := a.front.Stats, a.pool.Stats()
	s.Reserved, s.PeakReserved, s.Regions = p.Reserved, p.ReservedHigh, p.Regions
	s.Reserves, s.ReserveFailures, s.Releases = p.Reserves, p.ReserveFailures, p.Releases
	return s
}

// LargestFree implements [power.Holes]: of any stream. O(log streams), amortized.
func (a *Allocator) LargestFree() device.Size { return a.pool.LargestFree() }

// MetadataBytes implements [power.Metered]. O(streams + regions / 32).
func (a *Allocator) MetadataBytes() device.Size { return a.pool.Bytes() }

// Walk implements [alloc.Inspector]. A free chunk that belongs to a stream shows it, and
// OwnerStream.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	a.pool.Walk(func(c streampool.Chunk) bool { return yield(show(c)) })
}

// BlockAt implements [power.Locator]. O(log regions).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	h, err := a.find(at)
	if err != nil {
		return alloc.Chunk{}, err
	}
	c := a.pool.Show(h)
	c.Region = a.pool.RegionOf(at)
	return show(c), nil
}

// show returns a chunk of the pool as Walk shows it.
func show(c streampool.Chunk) alloc.Chunk {
	v := alloc.Chunk{
		Region: c.Region, Addr: c.Addr, Size: c.Size, Requested: c.Requested, Class: alloc.NoClass, Stream: c.Stream,
		Tag: c.Tag,
	}
	switch {
	case c.Slack:
		v.State = alloc.Slack
	case c.State == streampool.Live:
		v.State = alloc.Live
	case c.State == streampool.Pending:
		v.State = alloc.Pending
	case c.Owner != 0:
		v.Owner = OwnerStream
	}
	return v
}

// Check implements [alloc.Inspector]. It recounts everything.
func (a *Allocator) Check() error {
	if err := a.pool.Check(); err != nil {
		return fmt.Errorf("async: %w", err)
	}
	if err := front.CompareStats(a.Stats(), a.Walk); err != nil {
		return fmt.Errorf("async: invariant A1 (counters match the walk): %w", err)
	}
	return nil
}

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span { return a.pool.CapacitySpan() }
