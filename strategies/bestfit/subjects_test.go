package bestfit_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// subjects are the configurations that the property suite runs, with what each promises.
// Every setting meets every other in at least one of them or in its default.
func subjects() []props.Subject {
	const fixed, doubling = regions.Fixed, regions.Doubling
	return []props.Subject{
		subject("default", bestfit.Config{Limit: 16 * device.MiB}),
		subject("strict", bestfit.Config{Looks: 1, Slack: bestfit.NoSlack, Limit: 64 * device.KiB}),
		subject("hole", bestfit.Config{Looks: 3, Spread: 2, Slack: 1, Tail: bestfit.TailHole, Limit: 96 * device.KiB}),
		subject("coarse", bestfit.Config{Quantum: 4 * device.KiB, Looks: 40, Spread: 1, Slack: 64, Limit: 256 * device.KiB}),
		subject("doubling", bestfit.Config{Growth: doubling, RegionBytes: 4 * device.KiB}),
		subject("doubling-release", bestfit.Config{Growth: doubling, RegionBytes: 4 * device.KiB, Release: true, Looks: 1,
			Spread: 4, Slack: 2}),
		subject("fixed-keep", bestfit.Config{Growth: fixed, RegionBytes: 8 * device.KiB, Release: true,
			KeepBytes: 16 * device.KiB,
			Tail:      bestfit.TailHole, Quantum: 512, Looks: 8, Slack: bestfit.NoSlack}),
		subject("request", bestfit.Config{Growth: regions.Request, RegionBytes: device.KiB, Limit: 48 * device.KiB,
			Release: true}),
		subject("proportional", bestfit.Config{Growth: regions.Proportional, RegionBytes: 2 * device.KiB,
			Tail: bestfit.TailHole, Quantum: 1}),
	}
}

// subject is a best fit over a device that runs out soon, or before the limit does.
func subject(name string, c bestfit.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	on := sim.Config{Capacity: 64 * device.KiB, Align: 256}
	if c.Limit >= 256*device.KiB {
		on.Capacity = 3 * c.Limit / 4
	}
	return props.SubjectOf(name, bestfit.New, c, on, c.Promises())
}
