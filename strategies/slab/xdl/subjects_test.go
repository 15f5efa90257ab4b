package xdl_test

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/slab/xdl"
)

func TestConformance(t *testing.T) { propstest.Run(t, subjects()...) }

func TestEveryKnobIsTurned(t *testing.T) { propstest.EveryKnob(t, subjects()...) }

func TestMetamorphic(t *testing.T) { propstest.RunMetamorphic(t, subjects()...) }

func FuzzConformance(f *testing.F) { propstest.FuzzEach(f, subjects()...) }

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("xdl-one-segment", xdl.Config{Compat: "xdl", Segments: 1, UnitBytes: 256, RegionBytes: 16 * device.KiB}, 1),
		subject("xdl-three-segments", xdl.Config{Segments: 3, UnitBytes: 512, RegionBytes: 192 * device.KiB}, 1),
		subject("xdl-odd-unit", xdl.Config{Segments: 2, UnitBytes: 768, RegionBytes: 96 * device.KiB}, 1),
		subject("xdl-tiny", xdl.Config{Segments: 32, UnitBytes: 1, RegionBytes: 2 * device.KiB}, 1),
		subject("xdl", xdl.Config{Segments: 32, UnitBytes: 4 * device.KiB, RegionBytes: 16 * device.MiB}, 2),
		subject("xdl-locks", xdl.Config{Segments: 3, UnitBytes: 512, RegionBytes: 192 * device.KiB, Locks: true}, 2),
	}
}

// subject is a slab over a device with room for some regions.
func subject(name string, c xdl.Config, regions device.Size) props.Subject {
	on := sim.Config{Capacity: regions * c.RegionBytes, Align: 256, Policy: sim.TopDown}
	return props.SubjectOf(name, xdl.Open, c, on, c.Promises())
}
