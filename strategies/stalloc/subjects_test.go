package stalloc_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/stalloc"
)

// subjects are the configurations that the property suite runs, with what each promises. All check
// every planned place.
func subjects() []props.Subject {
	return []props.Subject{
		subject("default", stalloc.Config{Limit: 48 * device.MiB}),
		subject("small", stalloc.Config{RegionBytes: 4 * device.KiB, Limit: 64 * device.KiB}),
		subject("unlimited", stalloc.Config{RegionBytes: 512}),
	}
}

// unchecked checks no planned place. It breaks I10, see TestTheSuiteFindsTheOverlap.
func unchecked() props.Subject {
	return subject("unchecked", stalloc.Config{
		Check: stalloc.CheckOff, RegionBytes: 4 * device.KiB, Limit: 64 * device.KiB,
	})
}

// subject is an allocator over a device that runs out before the limit is met.
func subject(name string, c stalloc.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	on := sim.Config{Capacity: 128 * device.KiB, Align: 512}
	if c.Limit > 0 {
		on.Capacity = 3 * c.Limit / 4
	}
	return props.SubjectOf(name, stalloc.New, c, on, c.Promises())
}
