package vmm_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/vmm"
)

// grain is the granularity of the devices of the tests.
const grain = 4 * device.KiB

// subjects are the configurations that the property suite runs, with what each promises.
// Every setting meets every other in at least one of them or in its default.
func subjects() []props.Subject {
	return []props.Subject{
		subject("default", vmm.Config{}),
		subject("first", vmm.Config{Fit: vmm.FitFirst}),
		subject("limit", vmm.Config{Limit: 48 * device.KiB, Quantum: 512}),
		subject("coarse", vmm.Config{PageBytes: 3 * grain, Limit: 96 * device.KiB}),
		subject("ranges", vmm.Config{RangeBytes: 2 * grain, Fit: vmm.FitFirst}),
		subject("release", vmm.Config{Release: true}),
		subject("release-keep", vmm.Config{Release: true, KeepBytes: 3 * grain, Fit: vmm.FitFirst, PageBytes: 2 * grain,
			RangeBytes: 8 * grain}),
		subject("bytes", vmm.Config{Quantum: 1, Release: true, RangeBytes: grain}),
	}
}

// subject is the strategy over a device that runs out soon, or after the limit does.
func subject(name string, c vmm.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	on := sim.Config{Capacity: 64 * device.KiB, Align: grain, Granularity: grain}
	return props.SubjectOf(name, vmm.New, c, on, c.Promises())
}
