package xdl_test

import (
	"cmp"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/buddy/xdl"
)

func TestConformance(t *testing.T) { propstest.Run(t, subjects()...) }

func TestEveryKnobIsTurned(t *testing.T) { propstest.EveryKnob(t, subjects()...) }

func TestMetamorphic(t *testing.T) { propstest.RunMetamorphic(t, subjects()...) }

func FuzzConformance(f *testing.F) { propstest.FuzzEach(f, subjects()...) }

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("tiny", xdl.Config{Compat: "xdl", RegionBytes: 4 * device.KiB, BlockBytes: 256}),
		subject("small", xdl.Config{RegionBytes: device.MiB, BlockBytes: 4 * device.KiB}),
		subject("xdl", xdl.Config{RegionBytes: device.GiB, BlockBytes: 16 * device.KiB}),
		subject("locks", xdl.Config{RegionBytes: 4 * device.KiB, BlockBytes: 256, Locks: true}),
	}
}

// subject is a buddy over a device with room for eight regions, which may touch. The device
// grows downwards, so that the oldest region, which is searched first, is the highest.
func subject(name string, c xdl.Config) props.Subject {
	p := c.Promises()
	p.SearchOrder = func(a, b alloc.Chunk) int {
		return cmp.Or(cmp.Compare(b.Region, a.Region), promise.ByAddress(a, b))
	}
	on := sim.Config{Capacity: 8 * c.RegionBytes, Align: 256, Policy: sim.TopDown}
	return props.SubjectOf(name, xdl.Open, c, on, p)
}
