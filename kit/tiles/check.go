package tiles

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/regions"
)

// invariantNames are the invariants of the package comment in a few words, by number.
var invariantNames = [...]string{
	1: "chunks tile their region, links mirror",
	2: "free neighbours are merged",
	3: "requested at least one byte and at most all",
	4: "the address index holds the live chunks",
	5: "every row is a chunk, a ring or spare",
	6: "the empty bytes are the bytes of regions without a live block",
	7: "counters match the walk",
}

func (c *Core) broken(number int, format string, args ...any) error {
	return fmt.Errorf("%s: invariant K%d (%s): %s", c.name, number, invariantNames[number], fmt.Sprintf(format, args...))
}

// Check implements [alloc.Inspector]. It recounts everything.
func (v View) Check() error {
	c := v.core
	if c.Closed() {
		return c.checkCounters()
	}
	var s sum
	for i := range c.pool.Len() {
		if err := c.checkRegion(c.pool.At(i), &s); err != nil {
			return err
		}
	}
	switch {
	case s.live != c.live.Len() && !c.live.Dropped():
		return c.broken(4, "%d live chunks, %d entries", s.live, c.live.Len())
	case s.chunks != c.Len():
		return c.broken(5, "%d chunks, %d rings and %d spare rows of %d", s.chunks, c.anchors, c.spares,
			len(c.Rows)-len(noRing))
	case s.empty != c.pool.Empty():
		return c.broken(6, "%d bytes, the counter says %d", s.empty, c.pool.Empty())
	}
	if err := c.checkSpares(); err != nil {
		return err
	}
	if err := c.index.Check(s.free); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return c.checkCounters()
}

// sum holds the counts of a check.
type sum struct {
	chunks, live, free int
	empty              device.Size
}

func (c *Core) checkRegion(held regions.Held, s *sum) error {
	at, prev := held.Addr, None
	before := s.live
	for h := Handle(held.Label); h != None; h = c.Rows[h].Next {
		if int(h) >= len(c.Rows) {
			return c.broken(1, "chunk %d is not in the table", h)
		}
		r := &c.Rows[h]
		if r.Addr != at || r.Prev != prev || r.Size == 0 || r.Size%c.quantum != 0 || c.Rows[h].link.state() == retired {
			return c.broken(1, "chunk %d at %v of %d bytes behind chunk %d, expected at %v behind chunk %d",
				h, r.Addr, uint64(r.Size), r.Prev, at, prev)
		}
		if err := c.checkChunk(h, s); err != nil {
			return err
		}
		at, prev = r.End(), h
	}
	if rest := held.End().Sub(at); at > held.End() || rest >= c.quantum {
		return c.broken(1, "chunks of region %v end at %v, the region at %v", held.Addr, at, held.End())
	}
	if s.live == before {
		s.empty += held.Size
	}
	return nil
}

func (c *Core) checkChunk(h Handle, s *sum) error {
	s.chunks++
	r := &c.Rows[h]
	if c.IsFree(h) {
		s.free++
		if c.IsFree(r.Prev) {
			return c.broken(2, "%v and %v are neighbours and free", c.Rows[r.Prev].Addr, r.Addr)
		}
		return nil
	}
	s.live++
	if n := c.Requested(h); n == 0 || n > r.Size {
		return c.broken(3, "%v: %d bytes requested of %d", r.Addr, uint64(n), uint64(r.Size))
	}
	if !c.live.Dropped() && c.find(r.Addr) != h {
		return c.broken(4, "%v is live and not in it", r.Addr)
	}
	return nil
}

func (c *Core) checkSpares() error {
	n := 0
	for h := c.spare; h != None; h = c.Rows[h].Next {
		if n++; n > c.spares || c.Rows[h].link.state() != retired {
			return c.broken(5, "row %d is number %d of %d spare ones", h, n, c.spares)
		}
	}
	if n != c.spares {
		return c.broken(5, "%d spare rows in the list, the counter says %d", n, c.spares)
	}
	return nil
}

func (c *Core) checkCounters() error {
	if err := front.CompareStats(c.Stats, c.walk); err != nil {
		return c.broken(7, "%v", err)
	}
	return nil
}
