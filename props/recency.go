package props

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// stamps are the counts of frees that the model keeps: see [power.Frontier].
type stamps struct {
	frontier  uint64 // frees below this count are safe
	forgotten uint64 // frees up to this count may have been of memory that went back since
	releases  uint64 // of the device, when forgotten was set
}

func (s *stamps) raise(count uint64) { s.frontier = max(s.frontier, count) }

// eachUnsafe yields the freed blocks that the frontier has not passed, newest first, with
// their counts, as far as the model remembers them.
func (m *Model) eachUnsafe(yield func(Grant, uint64) bool) {
	for i := len(m.freed) - 1; i >= 0; i-- {
		count := m.frees - uint64(len(m.freed)-1-i)
		if count < m.stamps.frontier || count <= m.stamps.forgotten || !yield(m.freed[i], count) {
			return
		}
	}
}

// released notes how many regions the device took back. Memory that is reserved again counts as
// new, and it is unknown which memory went back, so all earlier frees are forgotten.
func (m *Model) released(releases uint64) {
	if releases != m.stamps.releases {
		m.stamps.releases, m.stamps.forgotten = releases, m.frees
	}
}

func (g Grant) touches(a device.Addr, n device.Size) bool {
	return g.Block.Addr < a.Add(n) && a < g.End()
}

// Recency checks invariant I46 of a strategy that stamps frees: a free chunk is as unsafe as
// the newest of its bytes.
func Recency(walk []alloc.Chunk, m *Model) error {
	for g, count := range m.eachUnsafe {
		for _, c := range walk {
			if c.State == alloc.Free && g.touches(c.Addr, c.Size) && c.FreedAt < count {
				return violated(IRecency, "free chunk %v of %d bytes shows count %d, in it allocation %d was freed at %d and the "+
					"frontier is %d",
					c.Addr, uint64(c.Size), c.FreedAt, g.ID, count, m.stamps.frontier)
			}
		}
	}
	return nil
}

// InBound checks invariant I46 of a block that was just granted: nothing in it was freed
// after the bound of its request, unless the frontier has passed that.
func InBound(b alloc.Block, r alloc.Request, m *Model) error {
	if r.Before == 0 {
		return nil
	}
	for g, count := range m.eachUnsafe {
		if count > r.Before && g.touches(b.Addr, b.Size) {
			return violated(IRecency, "block %v was asked for from memory freed up to %d, in it allocation %d was freed at %d "+
				"and the frontier is %d",
				b.Addr, r.Before, g.ID, count, m.stamps.frontier)
		}
	}
	return nil
}
