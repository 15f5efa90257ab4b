package dlmalloc

import (
	"math"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

func (c Config) Promises() promise.Set {
	return promise.Set{
		Quantum:         c.Quantum,
		Honours:         func(alloc.Request) bool { return true },
		MaxGrant:        c.maxGrant,
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ExactPlacer:     true,
		ClassOf: func(free alloc.Chunk) int32 {
			if free.Owner != OwnerBin {
				return alloc.NoClass
			}
			return int32(c.scale().bin(free.Size))
		},
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			return free.Size >= device.AlignUp(r.Size, c.Quantum)+max(r.Align, c.Quantum)-c.Quantum
		},
		FreeReleases: c.Release || c.DirectBytes != 0,
		Boundaries:   promise.PowersOfTwo(c.Quantum, device.GiB),
	}
}

// maxGrant returns the largest block for a request: a remainder below MinChunk stays in it. A block
// with a region of its own has all that the device granted.
func (c Config) maxGrant(r alloc.Request) device.Size {
	n := device.AlignUp(r.Size, c.Quantum)
	if c.DirectBytes != 0 && n >= c.DirectBytes {
		return math.MaxUint64
	}
	return n + device.Size(c.MinChunk-1)*c.Quantum
}
