package slabbuddy_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("tiny", slabbuddy.Config{RegionBytes: 4 * device.KiB, BlockBytes: 256, Segments: 1}, sim.FirstFit),
		subject("small", slabbuddy.Config{RegionBytes: 32 * device.KiB, BlockBytes: device.KiB, Segments: 2}, sim.TopDown),
		subject("medium", slabbuddy.Config{RegionBytes: device.MiB, BlockBytes: 4 * device.KiB, Segments: 4}, sim.Bump),
		subject("xdl", slabbuddy.Config{RegionBytes: 64 * device.MiB, BlockBytes: 16 * device.KiB, Segments: 32}, sim.FirstFit),
	}
}

// subject is a slab-buddy over a device with room for eight regions of either part.
func subject(name string, c slabbuddy.Config, policy sim.Policy) props.Subject {
	c.Compat = slabbuddy.CompatXDL
	on := sim.Config{Capacity: 8 * c.RegionBytes, Align: 256, Policy: policy}
	return props.SubjectOf(name, slabbuddy.New, c, on, c.Promises())
}
