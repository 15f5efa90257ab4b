package vmm

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

func (c Config) Promises() promise.Set {
	p := promise.Set{
		Quantum:         c.Quantum,
		Honours:         func(alloc.Request) bool { return true },
		MaxGrant:        func(r alloc.Request) device.Size { return device.AlignUp(r.Size, c.Quantum) },
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ClassOf:         func(alloc.Chunk) int32 { return alloc.NoClass },
		SearchOrder:     promise.BySizeThenAddress,
		Serves:          promise.ServesAnywhere(c.Quantum),
		FreeReleases:    c.Release,
		Page:            c.PageBytes,
		Boundaries:      promise.PowersOfTwo(c.Quantum, device.GiB),
	}
	if c.Fit == FitFirst {
		p.SearchOrder = promise.ByAddress
	}
	return p
}
