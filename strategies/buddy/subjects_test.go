package buddy_test

import (
	"cmp"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/buddy"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("tiny", buddy.Config{Compat: buddy.CompatXDL, RegionBytes: 4 * device.KiB, BlockBytes: 256}),
		subject("small", buddy.Config{Compat: buddy.CompatXDL, RegionBytes: device.MiB, BlockBytes: 4 * device.KiB}),
		subject("xdl", buddy.Config{Compat: buddy.CompatXDL, RegionBytes: device.GiB, BlockBytes: 16 * device.KiB}),
	}
}

// subject is a buddy over a device with room for eight regions, which may touch. The device
// grows downwards, so that the oldest region, which is searched first, is the highest.
func subject(name string, c buddy.Config) props.Subject {
	p := c.Promises()
	p.SearchOrder = func(a, b alloc.Chunk) int {
		return cmp.Or(cmp.Compare(b.Region, a.Region), alloc.ByAddress(a, b))
	}
	on := sim.Config{Capacity: 8 * c.RegionBytes, Align: 256, Policy: sim.TopDown}
	return props.SubjectOf(name, buddy.New, c, on, p)
}
