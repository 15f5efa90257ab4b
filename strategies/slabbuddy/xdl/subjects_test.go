package xdl_test

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/slabbuddy/xdl"
)

func TestConformance(t *testing.T) { propstest.Run(t, subjects()...) }

func TestEveryKnobIsTurned(t *testing.T) { propstest.EveryKnob(t, subjects()...) }

func TestMetamorphic(t *testing.T) { propstest.RunMetamorphic(t, subjects()...) }

func FuzzConformance(f *testing.F) { propstest.FuzzEach(f, subjects()...) }

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("tiny", xdl.Config{Compat: "xdl", RegionBytes: 4 * device.KiB, BlockBytes: 256, Segments: 1}, sim.FirstFit),
		subject("small", xdl.Config{RegionBytes: 32 * device.KiB, BlockBytes: device.KiB, Segments: 2}, sim.TopDown),
		subject("medium", xdl.Config{RegionBytes: device.MiB, BlockBytes: 4 * device.KiB, Segments: 4}, sim.Bump),
		subject("xdl", xdl.Config{RegionBytes: 64 * device.MiB, BlockBytes: 16 * device.KiB, Segments: 32}, sim.FirstFit),
		subject("locks", xdl.Config{RegionBytes: 32 * device.KiB, BlockBytes: device.KiB, Segments: 2, Locks: true},
			sim.TopDown),
	}
}

// subject is a slab-buddy over a device with room for eight regions of either part.
func subject(name string, c xdl.Config, policy sim.Policy) props.Subject {
	on := sim.Config{Capacity: 8 * c.RegionBytes, Align: 256, Policy: policy}
	return props.SubjectOf(name, xdl.Open, c, on, c.Promises())
}
