package slabbuddy

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Promises implements [alloc.Promiser]: those of the part that a size is routed to.
func (c Config) Promises() alloc.Promises {
	runs, blocks := c.slab().Promises(), c.buddy().Promises()
	unit := c.slab().UnitBytes
	return alloc.Promises{
		Quantum: unit,
		Honours: func(r alloc.Request) bool {
			switch {
			case r.Size < c.BlockBytes:
				return runs.Honours(r)
			case r.Size < c.RegionBytes:
				return blocks.Honours(r)
			}
			return true
		},
		MaxGrant: func(r alloc.Request) device.Size {
			switch {
			case r.Size < c.BlockBytes:
				return runs.MaxGrant(r)
			case r.Size < c.RegionBytes:
				return blocks.MaxGrant(r)
			}
			return r.Size
		},
		MustMerge: func(left, right alloc.Chunk) bool {
			if left.Owner == OwnerSlab {
				return runs.MustMerge(left, right)
			}
			return blocks.MustMerge(left, right)
		},
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			if r.Size < c.BlockBytes {
				return runs.Serves != nil && free.Owner == OwnerSlab && runs.Serves(free, r)
			}
			return r.Size < c.RegionBytes && free.Owner == OwnerBuddy && blocks.Serves(free, r)
		},
		FreeReleases: true,
		Boundaries: []device.Size{
			unit, 2 * unit, 3 * unit, c.BlockBytes, 2 * c.BlockBytes, c.RegionBytes / 2, c.RegionBytes, 2 * c.RegionBytes,
		},
	}
}
