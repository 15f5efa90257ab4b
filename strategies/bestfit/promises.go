package bestfit

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

func (c Config) Promises() promise.Set {
	return promise.Set{
		Quantum: c.Quantum,
		Honours: func(alloc.Request) bool { return true },
		MaxGrant: func(r alloc.Request) device.Size {
			n := device.AlignUp(r.Size, c.Quantum)
			return n + n>>c.slack()
		},
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ExactPlacer:     true,
		ClassOf:         func(alloc.Chunk) int32 { return alloc.NoClass },
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Owner != b.Owner {
				return int(a.Owner) - int(b.Owner)
			}
			return promise.BySizeThenAddress(a, b)
		},
		Serves:       promise.ServesAnywhere(c.Quantum),
		FreeReleases: c.Release,
		Boundaries:   promise.PowersOfTwo(c.Quantum, device.GiB),
	}
}
