package dlmalloc_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/dlmalloc"
)

// subjects are the configurations that the property suite runs, with what each promises.
// Every setting meets every other in at least one of them or in its default.
func subjects() []props.Subject {
	const fixed, doubling = regions.Fixed, regions.Doubling
	return []props.Subject{
		subject("default", dlmalloc.Config{Limit: 16 * device.MiB}),
		subject("small", dlmalloc.Config{MinChunk: 2, Limit: 64 * device.KiB}),
		subject("fine", dlmalloc.Config{Quantum: 1, MinChunk: 8, Limit: 48 * device.KiB}),
		subject("coarse", dlmalloc.Config{Quantum: 4 * device.KiB, MinChunk: 3, Limit: 256 * device.KiB}),
		subject("doubling-release", dlmalloc.Config{Growth: doubling, RegionBytes: 4 * device.KiB, Release: true}),
		subject("fixed-direct", dlmalloc.Config{Growth: fixed, RegionBytes: 8 * device.KiB, Quantum: 16,
			DirectBytes: 12 * device.KiB}),
		subject("fixed-keep", dlmalloc.Config{Growth: fixed, RegionBytes: 8 * device.KiB, Release: true,
			KeepBytes: 16 * device.KiB, DirectBytes: 4 * device.KiB, MinChunk: 2, Limit: 48 * device.KiB}),
		subject("request", dlmalloc.Config{Growth: regions.Request, RegionBytes: device.KiB, Limit: 48 * device.KiB,
			Release: true}),
		subject("proportional", dlmalloc.Config{Growth: regions.Proportional, RegionBytes: 2 * device.KiB, Quantum: 1,
			DirectBytes: 1}),
	}
}

// subject is a dlmalloc over a device that runs out soon, or before the limit does.
func subject(name string, c dlmalloc.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	on := sim.Config{Capacity: 64 * device.KiB, Align: 256}
	if c.Limit >= 256*device.KiB {
		on.Capacity = 3 * c.Limit / 4
	}
	return props.SubjectOf(name, dlmalloc.New, c, on, c.Promises())
}
