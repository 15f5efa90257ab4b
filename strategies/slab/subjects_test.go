package slab_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/slab"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		runs("xdl-one-segment", slab.Config{Segments: 1, UnitBytes: 256, RegionBytes: 16 * device.KiB}, 1),
		runs("xdl-three-segments", slab.Config{Segments: 3, UnitBytes: 512, RegionBytes: 192 * device.KiB}, 1),
		runs("xdl-odd-unit", slab.Config{Segments: 2, UnitBytes: 768, RegionBytes: 96 * device.KiB}, 1),
		runs("xdl-tiny", slab.Config{Segments: 32, UnitBytes: 1, RegionBytes: 2 * device.KiB}, 1),
		runs("xdl", slab.Config{Segments: 32, UnitBytes: 4 * device.KiB, RegionBytes: 16 * device.MiB}, 2),
		lists("blaze-tiny", slab.Config{MinClassBytes: 2, MaxClassBytes: device.KiB, RegionBytes: 4 * device.KiB}),
		lists("blaze-aligned", slab.Config{MinClassBytes: 256, MaxClassBytes: 64 * device.KiB, RegionBytes: 192 * device.KiB}),
		lists("blaze", slab.Config{MinClassBytes: 2, MaxClassBytes: 256 * device.MiB, RegionBytes: device.GiB}),
	}
}

// runs is a slab of mode "xdl" over a device with room for some regions.
func runs(name string, c slab.Config, regions device.Size) props.Subject {
	c.Compat = slab.CompatXDL
	on := sim.Config{Capacity: regions * c.RegionBytes, Align: 256, Policy: sim.TopDown}
	return props.SubjectOf(name, slab.New, c, on, c.Promises())
}

// lists is a slab of mode "blaze" over a device with room for four regions.
func lists(name string, c slab.Config) props.Subject {
	c.Compat = slab.CompatBlaze
	return props.SubjectOf(name, slab.New, c, sim.Config{Capacity: 4 * c.RegionBytes, Align: 256}, c.Promises())
}
