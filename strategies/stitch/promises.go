package stitch

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Promises implements [alloc.Promiser].
func (c Config) Promises() alloc.Promises {
	return alloc.Promises{
		Quantum: quantum,
		Honours: func(r alloc.Request) bool { return r.Align <= c.ChunkBytes },
		MaxGrant: func(r alloc.Request) device.Size {
			if r.Size < c.ChunkBytes {
				return device.AlignUp(r.Size, quantum)
			}
			return device.AlignUp(r.Size, c.ChunkBytes)
		},
		MustMerge:       alloc.MergeAll,
		ExactNeighbours: true,
		ClassOf:         func(alloc.Chunk) int32 { return alloc.NoClass },
		SearchOrder: func(a, b alloc.Chunk) int {
			return cmp.Or(cmp.Compare(a.Owner, b.Owner), alloc.BySizeThenAddress(a, b))
		},
		Serves: func(f alloc.Chunk, r alloc.Request) bool {
			switch {
			case r.Align > c.ChunkBytes || !device.CanAlignUp(r.Size, c.ChunkBytes):
				return false
			case r.Size < c.ChunkBytes:
				return f.Owner == OwnerSmall && f.Size >= needOf(r.Size, r.Align)
			}
			return f.Owner == OwnerPages && f.Size >= device.AlignUp(r.Size, c.ChunkBytes)
		},
		Boundaries: append(alloc.PowersOfTwo(quantum, 8*c.ChunkBytes), 3*c.ChunkBytes, c.SmallBytes),
	}
}
