package vmm

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

var (
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Trimmer    = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Locator    = (*Allocator)(nil)
)

// LargestFree implements [power.Holes]: the largest chunk that serves without a device call. O(1)
// for the best fit, O(free chunks) for the first fit.
func (a *Allocator) LargestFree() device.Size { return a.free.largest() }

// MetadataBytes implements [power.Metered]. O(leaves of the lists).
func (a *Allocator) MetadataBytes() device.Size {
	return index.BytesOf(a.rows) + a.free.bytes() + a.gaps.Bytes(4) + a.live.Bytes() + a.mem.Bytes()
}

// Trim implements [power.Trimmer]. It releases every whole page without a live block, by address,
// and then the ranges without memory. It returns the bytes unmapped.
func (a *Allocator) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	return a.trim()
}

// trim is Trim of an allocator that may be closed.
func (a *Allocator) trim() (device.Size, error) {
	n, err := a.shrink()
	if failed := a.discard(); err == nil {
		err = failed
	}
	return n, err
}

// Close implements [alloc.Strategy]. Walk shows memory that the device refuses to take back as
// slack; the next Close tries again.
func (a *Allocator) Close() error {
	if !a.front.Closed() {
		// From now on all memory is stuck, so trim releases it, and retries what the device refused.
		a.front.Close()
		a.free.clear()
		for i := range a.mem.Len() {
			a.condemn(a.mem.At(i).First)
		}
	}
	_, err := a.trim()
	return err
}

// condemn makes every chunk with memory from h on stuck, merged with adjacent stuck ones.
func (a *Allocator) condemn(h handle) {
	for ; h != none; h = a.rows[h].next {
		c := &a.rows[h]
		if c.state != free && c.state != live {
			continue
		}
		if c.state == live {
			a.live.Unlink(c.addr, h)
		}
		a.stuck += c.size
		c.state, c.requested, c.tag, c.stream = stuck, 0, 0, 0
		if p := c.prev; a.is(p, stuck) {
			a.absorb(p)
			h = p
		}
		if n := a.rows[h].next; a.is(n, stuck) {
			a.absorb(h)
		}
	}
}

func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	for i := range a.mem.Len() {
		s := a.mem.At(i)
		for h := s.First; h != none; h = a.rows[h].next {
			if !yield(a.show(s.Addr, h)) {
				return
			}
		}
	}
}

// BlockAt implements [power.Locator]. O(log ranges).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	h := a.find(at)
	if h == none {
		return alloc.Chunk{}, a.front.NoBlock()
	}
	return a.show(a.mem.Under(at).Addr, h), nil
}

func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	for h := range a.free.all {
		if !yield(a.show(a.mem.Under(a.rows[h].addr).Addr, h)) {
			return
		}
	}
}

// shown maps states to states of chunks.
var shown = [...]alloc.State{free: alloc.Free, live: alloc.Live, unmapped: alloc.Unmapped, stuck: alloc.Slack}

// show returns a chunk as Walk shows it.
func (a *Allocator) show(region device.Addr, h handle) alloc.Chunk {
	c := &a.rows[h]
	return alloc.Chunk{
		Region: region, Addr: c.addr, Size: c.size, State: shown[c.state], Class: alloc.NoClass,
		Requested: c.requested, Tag: c.tag, Stream: c.stream,
	}
}

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span { return a.span.Common(a.ranges.Of(rangeFor)) }
