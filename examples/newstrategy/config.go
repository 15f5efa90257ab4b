package main

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// quantum is the unit of sizes and the alignment of blocks: 256 bytes is the smallest alignment
// that CUDA guarantees.
const quantum device.Size = 256

// Config of a first fit.
type Config struct {
	// bytes of the one region; 0 means 1 GiB
	Capacity device.Size `json:"capacity" doc:"bytes of the one region; default 1 GiB"`
}

// ForCapacity implements [setting.CapacityConfig]: the whole device is the one region.
func (Config) ForCapacity(n device.Size) Config { return Config{Capacity: n} }

// Preallocates implements [setting.PreallocatingConfig]: the whole region is reserved at once, so
// reserved bytes do not show the need.
func (Config) Preallocates() bool { return true }

// Promises implements [promise.Promiser].
func (Config) Promises() promise.Set {
	return promise.Set{
		Quantum:   quantum,
		MustMerge: promise.MergeAll,
		Serves:    promise.ServesAnywhere(quantum),
	}
}

// limit returns the size of the region.
func (c Config) limit() device.Size {
	return device.AlignDown(cmp.Or(c.Capacity, device.GiB), quantum)
}
