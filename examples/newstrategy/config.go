package main

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// quantum is what sizes are rounded up to and what every block is aligned to: 256 bytes is
// the smallest alignment that CUDA gives.
const quantum device.Size = 256

// Config of a first fit.
type Config struct {
	// bytes of the one region; 0 means 1 GiB
	Capacity device.Size `json:"capacity" doc:"bytes of the one region; default 1 GiB"`
}

// ForCapacity implements [alloc.CapacityConfig]: the whole device is the one region.
func (Config) ForCapacity(n device.Size) Config { return Config{Capacity: n} }

// Preallocates implements [alloc.PreallocatingConfig]: the region is taken whole, so what
// is reserved says nothing about what is needed.
func (Config) Preallocates() bool { return true }

// Promises implements [alloc.Promiser].
func (Config) Promises() alloc.Promises {
	return alloc.Promises{
		Quantum:   quantum,
		MustMerge: alloc.MergeAll,
		Serves:    alloc.ServesAnywhere(quantum),
	}
}

// limit returns the size of the region.
func (c Config) limit() device.Size {
	return device.AlignDown(cmp.Or(c.Capacity, device.GiB), quantum)
}
