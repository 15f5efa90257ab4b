package async_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/async"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	const off, kib = async.Off, device.KiB
	return []props.Subject{
		subject("default", async.Config{RegionBytes: 16 * kib}),
		subject("keep", async.Config{RegionBytes: 8 * kib, ReleaseThreshold: ^device.Size(0), Limit: 48 * kib}),
		subject("strict", async.Config{RegionBytes: 16 * kib, FollowEvents: off, ReuseFinished: off, InsertWaits: off}),
		subject("follow", async.Config{RegionBytes: 1536, ReuseFinished: off, InsertWaits: off, ReleaseThreshold: 20 * kib}),
		subject("finished", async.Config{RegionBytes: 4 * kib, FollowEvents: off, InsertWaits: off}),
		subject("waits", async.Config{RegionBytes: 32 * kib, FollowEvents: off, ReuseFinished: off,
			ReleaseThreshold: 32 * kib}),
	}
}

// subject is a pool over a device that runs out soon.
func subject(name string, c async.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // the configurations above are sound
	}
	return props.SubjectOf(name, async.New, c, sim.Config{Capacity: 64 * device.KiB, Align: 256}, c.Promises())
}
