package compiler

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
)

var (
	_ power.Holes      = (*Allocator)(nil)
	_ power.FreeWalker = (*Allocator)(nil)
	_ power.Trimmer    = (*Allocator)(nil)
	_ power.Metered    = (*Allocator)(nil)
	_ power.Locator    = (*Allocator)(nil)
	_ power.Spanned    = (*Allocator)(nil)
	_ power.Failure    = (*Allocator)(nil)
)

// stateOf returns how a walk shows a page of a segment.
func (g *graph) stateOf(i, p int32) alloc.State {
	at := &g.pages[p]
	switch {
	case g.segments[i].state == live:
		return alloc.Live
	case at.used || at.home != i:
		return alloc.Aliased
	case g.segments[i].state == broken:
		return alloc.Slack
	}
	return alloc.Free
}

// walk yields the chunks of a segment and reports whether the walk continues.
func (g *graph) walk(i int32, closed bool, yield func(alloc.Chunk) bool) bool {
	s := &g.segments[i]
	c := alloc.Chunk{Region: s.region.Addr, Addr: s.region.Addr, Class: alloc.NoClass, Owner: OwnerGraph}
	for k, p := range s.pages {
		now := g.stateOf(i, p)
		if closed && now == alloc.Free {
			now = alloc.Slack
		}
		if k > 0 && now != c.State {
			if !yield(c) {
				return false
			}
			c.Addr, c.Size = c.End(), 0
		}
		c.State = now
		c.Size += g.size
	}
	if c.State == alloc.Live && c.Size > 0 {
		c = g.show(c)
	}
	if c.Size > 0 && !yield(c) {
		return false
	}
	if rest := s.region.End().Sub(c.End()); rest > 0 {
		return yield(alloc.Chunk{
			Region: s.region.Addr, Addr: c.End(), Size: rest, State: alloc.Unmapped, Class: alloc.NoClass, Owner: OwnerGraph,
		})
	}
	return true
}

// show adds the properties of the request to the chunk of a live segment.
func (g *graph) show(c alloc.Chunk) alloc.Chunk {
	b, _ := g.ledger.Get(c.Addr)
	c.Requested, c.Tag, c.Stream = b.Requested, b.Tag, b.Stream
	return c
}

// survey returns the size of the largest free chunk of the graph and the bytes of its slack.
// O(pages of all segments).
func (g *graph) survey() (largest, slack device.Size) {
	for i := range g.segments {
		g.walk(int32(i), false, func(c alloc.Chunk) bool {
			switch c.State {
			case alloc.Free:
				largest = max(largest, c.Size)
			case alloc.Slack:
				slack += c.Size
			}
			return true
		})
	}
	return largest, slack
}

// Walk implements [alloc.Inspector]. Regions of the fallback and segments follow each other by
// address.
func (a *Allocator) Walk(yield func(alloc.Chunk) bool) {
	next, more := 0, true
	segments := func(below device.Addr) bool {
		for ; more && next < a.graph.order.Len(); next++ {
			e := a.graph.order.Entry(a.graph.order.Nth(next))
			if e.Addr >= below {
				break
			}
			more = a.graph.walk(e.Value, a.core.Closed(), yield)
		}
		return more
	}
	a.View.Walk(func(c alloc.Chunk) bool {
		more = segments(c.Region) && yield(c)
		return more
	})
	segments(^device.Addr(0))
}

// WalkFree implements [power.FreeWalker]: the fallback, then the graph by address.
func (a *Allocator) WalkFree(yield func(alloc.Chunk) bool) {
	more := true
	a.View.WalkFree(func(c alloc.Chunk) bool {
		more = yield(c)
		return more
	})
	for i := 0; more && !a.core.Closed() && i < a.graph.order.Len(); i++ {
		a.graph.walk(a.graph.order.Entry(a.graph.order.Nth(i)).Value, false, func(c alloc.Chunk) bool {
			more = c.State != alloc.Free || yield(c)
			return more
		})
	}
}

// LargestFree implements [power.Holes]. O(pages of all segments).
func (a *Allocator) LargestFree() device.Size {
	if a.core.Closed() {
		return 0
	}
	largest, _ := a.graph.survey()
	return max(a.View.LargestFree(), largest)
}

// MetadataBytes implements [power.Metered]. O(segments + pages).
func (a *Allocator) MetadataBytes() device.Size {
	g := &a.graph
	n := a.View.MetadataBytes() + index.BytesOf(a.record) + index.BytesOf(g.segments) + index.BytesOf(g.spare) +
		index.BytesOf(g.pages) + index.BytesOf(g.vacant) + g.order.Bytes(segmentBytes) + g.ledger.Bytes()
	for i := range g.segments {
		n += index.BytesOf(g.segments[i].pages)
	}
	for i := range g.pages {
		n += index.BytesOf(g.pages[i].in)
	}
	return n
}

// segmentBytes is the size of a value of graph.order.
const segmentBytes = 4

// Trim implements [power.Trimmer]. The record is lost.
func (a *Allocator) Trim() (device.Size, error) {
	if a.core.Closed() {
		return 0, alloc.ErrClosed
	}
	before := a.core.Stats.Reserved
	err := a.graph.trim()
	if a.phase != outside {
		a.phase = failed
	}
	if _, e := a.View.Trim(); err == nil {
		err = e
	}
	return before - a.core.Stats.Reserved, err
}

// BlockAt implements [power.Locator]. O(log regions).
func (a *Allocator) BlockAt(at device.Addr) (alloc.Chunk, error) {
	b, ok := a.graph.ledger.Get(at)
	if !ok {
		return a.View.BlockAt(at)
	}
	s := &a.graph.segments[b.Place]
	return a.graph.show(alloc.Chunk{
		Region: at, Addr: at, Size: a.graph.sizeOf(s), State: alloc.Live, Class: alloc.NoClass, Owner: OwnerGraph,
	}), nil
}

// LastRefusal implements [power.Failure].
func (a *Allocator) LastRefusal() (power.Refusal, bool) {
	return a.refusal, a.refusal.Reason != power.ReasonNone
}

// CapacitySpan implements [power.Spanned].
func (a *Allocator) CapacitySpan() device.Span { return a.View.CapacitySpan().Common(a.graph.span) }

// Check implements [alloc.Inspector]. It recounts everything.
func (a *Allocator) Check() error {
	if err := a.graph.check(); err != nil {
		return err
	}
	all, own := a.core.Stats, &a.graph.own
	rest := &a.core.Stats // the fallback compares its own part with its own walk
	rest.Live -= own.Live
	rest.Requested -= own.Requested
	rest.Allocated -= own.Allocated
	rest.Active -= own.Active
	rest.Reserved -= own.Reserved
	rest.Regions -= own.Regions
	err := a.View.Check()
	a.core.Stats = all
	if err != nil {
		return err
	}
	if err := front.CompareStats(all, a.Walk); err != nil {
		return broke(4, "%v", err)
	}
	return nil
}

// invariantNames are the invariants of the package comment in a few words, by number.
var invariantNames = [...]string{
	1: "a page is used by one live segment",
	2: "pages list their segments",
	3: "the ledger holds the live segments",
	4: "counters match the walk",
}

func broke(number int, format string, args ...any) error {
	return fmt.Errorf("compiler: invariant J%d (%s): %s", number, invariantNames[number], fmt.Sprintf(format, args...))
}

// check checks the pages and the segments.
func (g *graph) check() error {
	used, mapped, blocks := make([]int, len(g.pages)), make([]int, len(g.pages)), 0
	for i := range g.segments {
		s := &g.segments[i]
		if s.state == live {
			blocks++
			if b, ok := g.ledger.Get(s.region.Addr); !ok || b.Place != uint64(i) {
				return broke(3, "the segment at %v is live and not in it", s.region.Addr)
			}
		}
		for _, p := range s.pages {
			mapped[p]++
			if s.state == live {
				used[p]++
			}
		}
	}
	if blocks != g.ledger.Len() {
		return broke(3, "%d live segments, %d entries", blocks, g.ledger.Len())
	}
	for p := range g.pages {
		if err := g.checkPage(int32(p), used[p], mapped[p]); err != nil {
			return err
		}
	}
	return nil
}

// checkPage checks a page that is mapped in some segments, of which some are live.
func (g *graph) checkPage(p int32, used, mapped int) error {
	at, home := &g.pages[p], 0
	if used > 1 || (used == 1) != at.used {
		return broke(1, "page %d is in %d live segments, marked as used: %t", p, used, at.used)
	}
	for _, i := range at.in {
		maps := 0
		for _, q := range g.segments[i].pages {
			if q == p {
				maps++
			}
		}
		if maps != 1 {
			return broke(2, "page %d lists the segment at %v, which maps it %d times", p, g.segments[i].region.Addr, maps)
		}
		if i == at.home {
			home++
		}
	}
	if len(at.in) != mapped || at.handle != 0 && home != min(mapped, 1) {
		return broke(2, "page %d lists %d segments, %d map it; home %d", p, len(at.in), mapped, at.home)
	}
	return nil
}
