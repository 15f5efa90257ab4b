package recall_test

import (
	"cmp"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/recall"
)

// page is the granularity of the devices of these tests: the least that a simulated device has, so
// that a few pages are a small size.
const page = 4 * device.KiB

// subjects are the configurations that the property suite runs, with what each promises. They
// forget soon, so that a sequence of calls exceeds their memory.
func subjects() []props.Subject {
	return []props.Subject{
		subject("default", recall.Config{Memory: 1 << 12, Limit: 16 * device.MiB}),
		subject("small", recall.Config{Memory: 1 << 8, Guard: 100, Limit: 64 * device.KiB}),
		subject("unlimited", recall.Config{Memory: 1 << 9, Guard: 10}),
		overPages("pages", recall.Config{PageBytes: page, Memory: 1 << 9}, 12),
		overPages("pages-limit", recall.Config{PageBytes: page, Limit: 9 * page}, 12),
		overPages("pages-coarse", recall.Config{PageBytes: 2 * page, Memory: 1 << 8, Limit: 20 * page}, 24),
		overPages("graph", recall.Config{Map: recall.Graph, PageBytes: page, Memory: 1 << 8}, 20),
		overPages("graph-limit", recall.Config{Map: recall.Graph, PageBytes: page, Limit: 24 * page}, 32),
	}
}

// subject is a range on a device that runs out before the limit is met.
func subject(name string, c recall.Config) props.Subject {
	on := sim.Config{Capacity: 64 * device.KiB, Align: 256}
	if c.Limit >= device.MiB {
		on.Capacity = 3 * c.Limit / 4
	}
	return subjectOn(name, c, on)
}

// overPages is an allocator over virtual memory of a device with room for some pages.
func overPages(name string, c recall.Config, room device.Size) props.Subject {
	c.Map = cmp.Or(c.Map, recall.Pages)
	return subjectOn(name, c, sim.Config{Capacity: room * page, Align: page, Granularity: page, Charge: page})
}

func subjectOn(name string, c recall.Config, on sim.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	return props.SubjectOf(name, recall.New, c, on, c.Promises())
}
