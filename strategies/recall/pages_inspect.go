package recall

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
)

// The owners of chunks, as they appear in alloc.Chunk.Owner.
const (
	OwnerHome  = uint8(home)  // a window with the first mapping of each handle
	OwnerAlias = uint8(alias) // a window with second mappings
)

var (
	_ power.Holes      = (*pages)(nil)
	_ power.FreeWalker = (*pages)(nil)
	_ power.Trimmer    = (*pages)(nil)
	_ power.Metered    = (*pages)(nil)
	_ power.Locator    = (*pages)(nil)
	_ power.Spanned    = (*pages)(nil)
)

// LargestFree implements [power.Holes]: the largest free chunk that a walk shows. O(chunks of alias
// windows).
func (a *pages) LargestFree() device.Size {
	if a.front.Closed() {
		return 0
	}
	n := a.free[home].Largest()
	for c := range a.walkKind(alias) {
		if c.State == alloc.Free {
			n = max(n, c.Size)
		}
	}
	return n
}

// walkKind yields the chunks of the windows of a kind.
func (a *pages) walkKind(k kind) func(yield func(alloc.Chunk) bool) {
	return func(yield func(alloc.Chunk) bool) {
		for _, i := range a.order {
			if a.windows[i].kind == k && !a.walkWindow(i, yield) {
				return
			}
		}
	}
}

// Walk implements [alloc.Inspector]. Memory that is not in use is shown in its home window, other
// memory where it is in use. Other mappings are Aliased.
func (a *pages) Walk(yield func(alloc.Chunk) bool) {
	for _, i := range a.order {
		if !a.walkWindow(i, yield) {
			return
		}
	}
}

// walkWindow yields the chunks of a window and reports whether the walk continues.
func (a *pages) walkWindow(i int32, yield func(alloc.Chunk) bool) bool {
	w := &a.windows[i]
	for h := w.head; h != noChunk; h = a.chunks[h].next {
		if c := &a.chunks[h]; c.state == free && w.kind == alias {
			if !a.walkAlias(c, yield) {
				return false
			}
		} else if !yield(a.show(h)) {
			return false
		}
	}
	broken := alloc.Slack
	if w.kind == alias {
		broken = alloc.Aliased
	}
	return w.part(w.end, w.mapped, broken, yield) && w.part(w.mapped, w.size, alloc.Unmapped, yield)
}

// part yields the part of a window between two distances from its start, if it has any bytes.
func (w *window) part(from, to device.Size, s alloc.State, yield func(alloc.Chunk) bool) bool {
	return from == to || yield(alloc.Chunk{
		Region: w.addr, Addr: w.addr.Add(from), Size: to - from, State: s, Class: alloc.NoClass, Owner: uint8(w.kind),
	})
}

// walkAlias yields the parts of a free chunk of an alias window: free where the slot is in use, and
// aliased elsewhere.
func (a *pages) walkAlias(c *chunk, yield func(alloc.Chunk) bool) bool {
	w := &a.windows[c.window]
	first, last := a.slotsOf(c)
	from, now := c.addr.Sub(w.addr), alloc.Aliased
	for i := first; i <= last; i++ {
		s := &w.slots[i]
		state := alloc.Aliased
		if s.users > 0 {
			state = alloc.Free
		}
		if at := max(s.addr, c.addr).Sub(w.addr); state != now {
			if !w.part(from, at, now, yield) {
				return false
			}
			from, now = at, state
		}
	}
	return w.part(from, c.end().Sub(w.addr), now, yield)
}

// show returns a chunk as Walk shows it.
func (a *pages) show(h uint32) alloc.Chunk {
	c := &a.chunks[h]
	w := &a.windows[c.window]
	v := alloc.Chunk{Region: w.addr, Addr: c.addr, Size: c.size, Class: alloc.NoClass, Owner: uint8(w.kind)}
	switch c.state {
	case free:
		if a.front.Closed() {
			v.State = alloc.Slack
		}
	case live:
		b, _ := a.live.Get(c.addr)
		v.State, v.Requested, v.Tag, v.Stream = alloc.Live, b.Requested, b.Tag, b.Stream
	case blocked:
		v.State = alloc.Aliased
	case gone:
		v.State = alloc.Unmapped
	}
	return v
}

// WalkFree implements [power.FreeWalker]: the home windows, smallest chunk first, then the parts of
// alias windows that are in use, by address.
func (a *pages) WalkFree(yield func(alloc.Chunk) bool) {
	if a.front.Closed() {
		return
	}
	for e := range a.free[home].All {
		if !yield(a.show(e.Handle)) {
			return
		}
	}
	for c := range a.walkKind(alias) {
		if c.State == alloc.Free && !yield(c) {
			return
		}
	}
}

// BlockAt implements [power.Locator]. O(1).
func (a *pages) BlockAt(at device.Addr) (alloc.Chunk, error) {
	b, ok := a.live.Get(at)
	if !ok {
		return alloc.Chunk{}, a.front.NoBlock()
	}
	return a.show(uint32(b.Place)), nil
}

// MetadataBytes implements [power.Metered]. O(windows + handles).
func (a *pages) MetadataBytes() device.Size {
	n := index.BytesOf(a.chunks) + index.BytesOf(a.windows) + index.BytesOf(a.order) + index.BytesOf(a.handles) +
		index.BytesOf(a.spare) + index.BytesOf(a.idle) + a.free[home].Bytes() + a.free[alias].Bytes() +
		a.live.Bytes() + a.watch.bytes()
	for i := range a.windows {
		w := &a.windows[i]
		n += index.BytesOf(w.slots) + index.BytesOf(w.slotOf) + index.BytesOf(w.broken)
	}
	for j := range a.handles {
		n += index.BytesOf(a.handles[j].in)
	}
	return n
}

// Trim implements [power.Trimmer]. It releases handles without a live block and their aliases. It
// costs O(handles) and a device call for each mapping.
func (a *pages) Trim() (device.Size, error) {
	if a.front.Closed() {
		return 0, alloc.ErrClosed
	}
	before := a.front.Stats.Reserved
	err := a.trim()
	return before - a.front.Stats.Reserved, err
}

// Close implements [alloc.Strategy]: it frees every block and trims. Walk shows memory that the
// device does not take back as slack.
func (a *pages) Close() error {
	a.front.Close()
	return a.empty()
}

// empty frees every block and trims.
func (a *pages) empty() error {
	for _, b := range a.live.Range {
		a.vacate(uint32(b.Place))
	}
	a.live, a.granted = front.Ledger{}, 0
	return a.trim()
}

// CapacitySpan implements [power.Spanned].
func (a *pages) CapacitySpan() device.Span { return a.front.span }
