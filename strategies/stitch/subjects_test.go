package stitch_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/stitch"
)

// page is the granularity of the devices of these tests: the least that a simulated device has, so
// that a few pages are a small size. Devices have room for a dozen, because each page takes calls,
// and the suite refuses each of them in turn.
const page = 4 * device.KiB

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("default", stitch.Config{}, 12*page),
		subject("limit", stitch.Config{Limit: 9 * page}, 12*page),
		subject("few-sblocks", stitch.Config{MostSBlocks: 2}, 12*page),
		subject("large-only", stitch.Config{FragLimit: 3 * page, SmallBytes: 3 * page, MostSBlocks: 16}, 12*page),
		subject("never", stitch.Config{FragLimit: device.GiB, Limit: 10 * page}, 16*page),
		subject("coarse", stitch.Config{ChunkBytes: 2 * page, SmallBytes: page, Limit: 20 * page, MostSBlocks: 8}, 24*page),
	}
}

// subject is a stitching allocator over a device of so many bytes.
func subject(name string, c stitch.Config, capacity device.Size) props.Subject {
	if c.ChunkBytes == 0 {
		c.ChunkBytes = page
	}
	if c.SmallBytes == 0 {
		c.SmallBytes = 2 * page
	}
	if c.FragLimit == 0 {
		c.FragLimit = page
	}
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	on := sim.Config{Capacity: capacity, Align: page, Granularity: page, Charge: page}
	return props.SubjectOf(name, stitch.New, c, on, c.Promises())
}
