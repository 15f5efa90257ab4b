package compiler_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/compiler"
)

const page = 4 * device.KiB

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("default", compiler.Config{}, 24*page),
		subject("limit", compiler.Config{Limit: 16 * page, RegionBytes: page}, 24*page),
		subject("fine", compiler.Config{PageBytes: page, RegionBytes: 512, Limit: 20 * page}, 16*page),
		subject("coarse", compiler.Config{PageBytes: 4 * page, RegionBytes: 2 * page}, 40*page),
	}
}

// subject is a compiler over a device of so many bytes.
func subject(name string, c compiler.Config, capacity device.Size) props.Subject {
	if c.PageBytes == 0 {
		c.PageBytes = page
	}
	if c.RegionBytes == 0 {
		c.RegionBytes = 2 * page
	}
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	on := sim.Config{Capacity: capacity, Align: page, Granularity: page, Charge: page}
	return props.SubjectOf(name, compiler.New, c, on, c.Promises())
}
