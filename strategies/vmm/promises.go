package vmm

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// Promises implements [alloc.Promiser].
func (c Config) Promises() alloc.Promises {
	p := alloc.Promises{
		Quantum:         c.Quantum,
		Honours:         func(alloc.Request) bool { return true },
		MaxGrant:        func(r alloc.Request) device.Size { return device.AlignUp(r.Size, c.Quantum) },
		MustMerge:       alloc.MergeAll,
		ExactNeighbours: true,
		ClassOf:         func(alloc.Chunk) int32 { return alloc.NoClass },
		SearchOrder:     alloc.BySizeThenAddress,
		Serves:          alloc.ServesAnywhere(c.Quantum),
		FreeReleases:    c.Release,
		Page:            c.PageBytes,
		Boundaries:      alloc.PowersOfTwo(c.Quantum, device.GiB),
	}
	if c.Fit == FitFirst {
		p.SearchOrder = alloc.ByAddress
	}
	return p
}
