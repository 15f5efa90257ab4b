package bestfit

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Promises implements [alloc.Promiser].
func (c Config) Promises() alloc.Promises {
	return alloc.Promises{
		Quantum: c.Quantum,
		Honours: func(alloc.Request) bool { return true },
		MaxGrant: func(r alloc.Request) device.Size {
			n := device.AlignUp(r.Size, c.Quantum)
			return n + n>>c.slack()
		},
		MustMerge:       alloc.MergeAll,
		ExactNeighbours: true,
		ExactPlacer:     true,
		ClassOf:         func(alloc.Chunk) int32 { return alloc.NoClass },
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Owner != b.Owner {
				return int(a.Owner) - int(b.Owner)
			}
			return alloc.BySizeThenAddress(a, b)
		},
		Serves:       alloc.ServesAnywhere(c.Quantum),
		FreeReleases: c.Release,
		Boundaries:   alloc.PowersOfTwo(c.Quantum, device.GiB),
	}
}
