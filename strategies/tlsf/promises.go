package tlsf

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

func (c Config) Promises() promise.Set {
	classes := c.scale()
	p := promise.Set{
		Quantum:         c.Quantum,
		Honours:         func(alloc.Request) bool { return true },
		MaxGrant:        func(r alloc.Request) device.Size { return device.AlignUp(r.Size, c.Quantum) },
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ExactPlacer:     c.Scan == 0 || c.Exhaustive,
		ClassOf:         func(free alloc.Chunk) int32 { return int32(classes.class(free.Size)) },
		Serves:          c.serves(),
		FreeReleases:    c.Release,
		Boundaries:      promise.PowersOfTwo(c.Quantum, device.GiB),
	}
	if c.List == ListAddress {
		p.SearchOrder = func(a, b alloc.Chunk) int {
			switch {
			case a.Owner != b.Owner:
				return cmp.Compare(a.Owner, b.Owner)
			case a.Owner == OwnerTail:
				return promise.BySizeThenAddress(a, b)
			}
			return promise.ByAddress(a, b)
		}
	}
	return p
}

// Bound returns the size from which every free chunk serves a request at any start: n
// rounded up to the quantum, plus the cost of the alignment, rounded up to the next class. The
// rounding adds less than a 2^SecondLevel-th.
//
// Precondition: defaults are filled in, n is at most 1<<60, align is 0 or a power of two.
func (c Config) Bound(n, align device.Size) device.Size {
	return c.scale().bound(device.AlignUp(n, c.Quantum) + max(align, c.Quantum) - c.Quantum)
}

// serves returns the predicate of free chunks that must serve a request: the chunks of at least the
// bound. In an exhaustive search, and among separate tails, every chunk with room serves.
func (c Config) serves() func(alloc.Chunk, alloc.Request) bool {
	fits := promise.ServesAnywhere(c.Quantum)
	return func(free alloc.Chunk, r alloc.Request) bool {
		if c.Exhaustive || free.Owner == OwnerTail {
			return fits(free, r)
		}
		return free.Size >= c.Bound(r.Size, r.Align)
	}
}
