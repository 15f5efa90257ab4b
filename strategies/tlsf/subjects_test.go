package tlsf_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/tlsf"
)

// subjects are the configurations that the property suite runs, with what each promises.
// Every setting meets every other in at least one of them or in its default.
func subjects() []props.Subject {
	const fixed, doubling = regions.Fixed, regions.Doubling
	return []props.Subject{
		subject("default", tlsf.Config{Limit: 16 * device.MiB}),
		subject("classic", tlsf.Config{Tail: tlsf.TailHole, Limit: 64 * device.KiB}),
		subject("fifo", tlsf.Config{List: tlsf.ListFIFO, SecondLevel: 2, Scan: 3, Limit: 96 * device.KiB}),
		subject("address", tlsf.Config{List: tlsf.ListAddress, SecondLevel: 1, Limit: 64 * device.KiB}),
		subject("address-hole", tlsf.Config{List: tlsf.ListAddress, SecondLevel: 3, Scan: 1, Tail: tlsf.TailHole,
			Growth:      fixed,
			RegionBytes: 16 * device.KiB}),
		subject("exhaustive", tlsf.Config{Exhaustive: true, SecondLevel: 1, Limit: 64 * device.KiB}),
		subject("exhaustive-hole", tlsf.Config{Exhaustive: true, SecondLevel: 2, Tail: tlsf.TailHole, List: tlsf.ListFIFO,
			Growth:      doubling,
			RegionBytes: 4 * device.KiB, Quantum: 512}),
		subject("coarse", tlsf.Config{Quantum: 4 * device.KiB, SecondLevel: 6, Scan: 2, Limit: 256 * device.KiB}),
		subject("doubling-release", tlsf.Config{Growth: doubling, RegionBytes: 4 * device.KiB, Release: true,
			List: tlsf.ListAddress}),
		subject("fixed-keep", tlsf.Config{Growth: fixed, RegionBytes: 8 * device.KiB, Release: true,
			KeepBytes:  16 * device.KiB,
			Exhaustive: true, Scan: 8, List: tlsf.ListFIFO}),
		subject("request", tlsf.Config{Growth: regions.Request, RegionBytes: device.KiB, Limit: 48 * device.KiB,
			Release: true, Tail: tlsf.TailHole}),
		subject("proportional", tlsf.Config{Growth: regions.Proportional, RegionBytes: 2 * device.KiB, SecondLevel: 4,
			Quantum: 1}),
	}
}

// subject is a TLSF over a device that runs out soon, or before the limit does.
func subject(name string, c tlsf.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	on := sim.Config{Capacity: 64 * device.KiB, Align: 256}
	if c.Limit >= 256*device.KiB {
		on.Capacity = 3 * c.Limit / 4
	}
	return props.SubjectOf(name, tlsf.New, c, on, c.Promises())
}
