package buddy

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Promises implements [alloc.Promiser].
func (c Config) Promises() alloc.Promises {
	grant := func(r alloc.Request) device.Size { return alloc.PowerOfTwo(r.Size, c.BlockBytes) }
	return alloc.Promises{
		Quantum:   c.BlockBytes,
		Honours:   func(r alloc.Request) bool { return r.Align <= min(grant(r), 2*device.MiB) },
		MaxGrant:  grant,
		MustMerge: alloc.MergeBuddies,
		ClassOf:   func(free alloc.Chunk) int32 { return int32(bits.TrailingZeros64(uint64(free.Size / c.BlockBytes))) },
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Region != b.Region {
				return -1 // by age, which a walk does not show
			}
			return alloc.ByAddress(a, b)
		},
		Serves:     func(free alloc.Chunk, r alloc.Request) bool { return free.Size >= grant(r) },
		Boundaries: alloc.PowersOfTwo(c.BlockBytes, c.RegionBytes),
	}
}
