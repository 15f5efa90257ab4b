package slab

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Promises implements [alloc.Promiser].
func (c Config) Promises() alloc.Promises {
	if c.Compat == CompatBlaze {
		return c.promisesOfLists()
	}
	return c.promisesOfRuns()
}

// promisesOfRuns are those of mode "xdl".
func (c Config) promisesOfRuns() alloc.Promises {
	p := alloc.Promises{
		Quantum:   c.UnitBytes,
		Honours:   func(r alloc.Request) bool { return r.Align <= c.UnitBytes&-c.UnitBytes },
		MaxGrant:  func(r alloc.Request) device.Size { return (r.Size + c.UnitBytes - 1) / c.UnitBytes * c.UnitBytes },
		MustMerge: alloc.MergeWithin(chunkUnits * c.UnitBytes),
	}
	for n := range device.Size(maxUnits + 1) {
		p.Boundaries = append(p.Boundaries, n*c.UnitBytes)
	}
	if c.Segments == 1 { // with more, a free run may belong to a segment whose turn it was not
		p.Serves = func(free alloc.Chunk, r alloc.Request) bool { return free.Size >= p.MaxGrant(r) }
	}
	return p
}

// promisesOfLists are those of mode "blaze".
func (c Config) promisesOfLists() alloc.Promises {
	grant := func(r alloc.Request) device.Size { return alloc.PowerOfTwo(r.Size, c.MinClassBytes) }
	return alloc.Promises{
		Quantum:  c.MinClassBytes,
		ZeroSize: true,
		Honours:  func(r alloc.Request) bool { return r.Align <= c.MinClassBytes },
		MaxGrant: grant,
		ClassOf: func(free alloc.Chunk) int32 {
			if free.Class == alloc.NoClass {
				return alloc.NoClass // what is not yet cut
			}
			return int32(bits.TrailingZeros64(uint64(free.Size)))
		},
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			if free.Class == alloc.NoClass {
				return free.Size >= grant(r)
			}
			return free.Size == grant(r)
		},
		Boundaries: alloc.PowersOfTwo(c.MinClassBytes, c.MaxClassBytes),
	}
}
