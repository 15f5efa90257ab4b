package stitch

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

func (c Config) Promises() promise.Set {
	return promise.Set{
		Quantum: quantum,
		Honours: func(r alloc.Request) bool { return r.Align <= c.ChunkBytes },
		MaxGrant: func(r alloc.Request) device.Size {
			if r.Size < c.ChunkBytes {
				return device.AlignUp(r.Size, quantum)
			}
			return device.AlignUp(r.Size, c.ChunkBytes)
		},
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ClassOf:         func(alloc.Chunk) int32 { return alloc.NoClass },
		SearchOrder: func(a, b alloc.Chunk) int {
			return cmp.Or(cmp.Compare(a.Owner, b.Owner), promise.BySizeThenAddress(a, b))
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
		Boundaries: append(promise.PowersOfTwo(quantum, 8*c.ChunkBytes), 3*c.ChunkBytes, c.SmallBytes),
	}
}
