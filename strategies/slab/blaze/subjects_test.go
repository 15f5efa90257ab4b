package blaze_test

import (
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/slab/blaze"
)

func TestConformance(t *testing.T) { propstest.Run(t, subjects()...) }

func TestEveryKnobIsTurned(t *testing.T) { propstest.EveryKnob(t, subjects()...) }

func TestMetamorphic(t *testing.T) { propstest.RunMetamorphic(t, subjects()...) }

func FuzzConformance(f *testing.F) { propstest.FuzzEach(f, subjects()...) }

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("blaze-tiny", blaze.Config{Compat: "blaze", MinClassBytes: 2, MaxClassBytes: device.KiB,
			RegionBytes: 4 * device.KiB}),
		subject("blaze-aligned", blaze.Config{MinClassBytes: 256, MaxClassBytes: 64 * device.KiB,
			RegionBytes: 192 * device.KiB}),
		subject("blaze", blaze.Config{MinClassBytes: 2, MaxClassBytes: 256 * device.MiB, RegionBytes: device.GiB}),
	}
}

// subject is an allocator over a device with room for four regions.
func subject(name string, c blaze.Config) props.Subject {
	return props.SubjectOf(name, blaze.New, c, sim.Config{Capacity: 4 * c.RegionBytes, Align: 256}, c.Promises())
}
