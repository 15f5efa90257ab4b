package bfc_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("default", bfc.Config{}),
		subject("growth", bfc.Config{AllowGrowth: true}),
		subject("tensorflow", bfc.Config{GarbageCollection: true}),
		subject("tensorflow-reserve", bfc.Config{GarbageCollection: true, ComputeCapability: 8}),
		subject("jax", bfc.Config{MemoryFraction: 0.75}),
		subject("jax-growth", bfc.Config{AllowGrowth: true, MemoryFraction: 0.75}),
		subject("gc", bfc.Config{AllowGrowth: true, GarbageCollection: true, AllocationIDs: true}),
		subject("vmm", bfc.Config{AllowGrowth: true, CoalesceRegions: true, Limit: 10 * device.MiB}),
		subject("vmm-gc", bfc.Config{AllowGrowth: true, CoalesceRegions: true, GarbageCollection: true}),
		subject("fraction", bfc.Config{AllowGrowth: true, FragmentationFraction: 0.001}),
		subject("timing", bfc.Config{AllowGrowth: true, Timing: true}),
		subject("timing-gc", bfc.Config{AllowGrowth: true, Timing: true, GarbageCollection: true, AllocationIDs: true}),
		subject("timing-vmm", bfc.Config{AllowGrowth: true, Timing: true, CoalesceRegions: true}),
		subject("2016", bfc.Config{Variant: bfc.V2016, Limit: 4 * device.MiB}),
		subject("2016-growth", bfc.Config{Variant: bfc.V2016, AllowGrowth: true}),
		subject("2026", bfc.Config{Variant: bfc.V2026}),
		subject("2026-growth-gc", bfc.Config{Variant: bfc.V2026, AllowGrowth: true, GarbageCollection: true}),
		subject("2026-timing", bfc.Config{Variant: bfc.V2026, AllowGrowth: true, Timing: true}),
		subject("spatial", bfc.Config{Variant: bfc.V2026, Spatial: true}),
		subject("spatial-gc", bfc.Config{Variant: bfc.V2026, Spatial: true, GarbageCollection: true, AllocationIDs: true}),
		subject("spatial-timing", bfc.Config{Variant: bfc.V2026, Spatial: true, Timing: true}),
		subject("mended", bfc.Config{AllowGrowth: true, Mended: true}),
		subject("mended-timing-gc", bfc.Config{AllowGrowth: true, Mended: true, Timing: true, GarbageCollection: true}),
		subject("mended-spatial", bfc.Config{Variant: bfc.V2026, Spatial: true, Mended: true}),
	}
}

// subject is a BFC with a limit of 16 MiB unless it has its own, over a device of 12 or of 24
// so that one or the other runs out first.
func subject(name string, c bfc.Config) props.Subject {
	if c.Limit == 0 {
		c.Limit = 16 * device.MiB
	}
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	capacity := 12 * device.MiB
	if c.Timing || c.Mended || c.Variant == bfc.V2016 {
		capacity = 24 * device.MiB
	}
	return props.SubjectOf(name, bfc.New, c, sim.Config{Capacity: capacity, Align: 256}, c.Promises())
}
