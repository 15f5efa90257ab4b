package pgmo_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/pgmo"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("default", pgmo.Config{Limit: 48 * device.MiB}),
		subject("small", pgmo.Config{RegionBytes: 4 * device.KiB, Limit: 64 * device.KiB}),
		subject("unlimited", pgmo.Config{RegionBytes: 512}),
	}
}

// subject is an allocator over a device that runs out before the limit is met.
func subject(name string, c pgmo.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	on := sim.Config{Capacity: 128 * device.KiB, Align: 512}
	if c.Limit > 0 {
		on.Capacity = 3 * c.Limit / 4
	}
	return props.SubjectOf(name, pgmo.New, c, on, c.Promises())
}
