package buddy_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/buddy"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("smallest", 64*device.KiB, buddy.Config{RegionBytes: 4 * device.KiB, Trim: buddy.TrimOn,
			DirectBytes: 16 * device.KiB}),
		subject("whole", 128*device.KiB, buddy.Config{Growth: regions.Whole, Trim: buddy.TrimOn, Limit: 100_000}),
		subject("weighted-leftmost", 96*device.KiB, buddy.Config{
			Family: buddy.Weighted, Placement: buddy.Leftmost, RegionChoice: buddy.Fullest, Growth: regions.Fixed,
			RegionBytes: 7 * device.KiB, DirectBytes: 10_000,
		}),
		subject("fibonacci-newest", 96*device.KiB, buddy.Config{
			Family: buddy.Fibonacci, Placement: buddy.SmallestNewest, RegionChoice: buddy.Lowest, Growth: regions.Doubling,
			RegionBytes: 5 * device.KiB, Coalescing: buddy.Lazy, Slack: 2, Release: true, KeepBytes: 8 * device.KiB,
		}),
		subject("k4-top-down", 96*device.KiB, buddy.Config{
			Family: buddy.FourPerDoubling, Placement: buddy.TopDown, RegionChoice: buddy.Lowest, Growth: regions.Fixed,
			RegionBytes: 9 * device.KiB, Coalescing: buddy.OnFailure, Trim: buddy.TrimOn, TrimBytes: 768, Release: true,
			DirectBytes: 12 * device.KiB, DirectCacheBytes: 30 * device.KiB,
		}),
		subject("k8", 96*device.KiB, buddy.Config{
			Family: buddy.EightPerDoubling, RegionBytes: 6 * device.KiB, RegionChoice: buddy.Fullest,
			Growth: regions.Proportional, DirectBytes: 8 * device.KiB, DirectCacheBytes: 1,
		}),
		subject("lazy-top-down", 96*device.KiB, buddy.Config{
			BlockBytes: 512, Placement: buddy.TopDown, RegionBytes: 6 * device.KiB, RegionChoice: buddy.Fullest,
			Coalescing: buddy.Lazy, DirectBytes: 8 * device.KiB, DirectCacheBytes: 20_000,
		}),
		subject("newest", 96*device.KiB, buddy.Config{
			Placement: buddy.SmallestNewest, RegionBytes: 6 * device.KiB, RegionChoice: buddy.Lowest, Growth: regions.Fixed,
			Coalescing: buddy.OnFailure, Trim: buddy.TrimOn, DirectBytes: 8 * device.KiB, Limit: 80 * device.KiB,
		}),
		subject("default", 160*device.MiB, buddy.Config{BlockBytes: 512}),
	}
}

// subject is a buddy over a device of the given capacity, with blocks of
// 256 bytes unless c says otherwise. The device grows downwards, so that the region that is
// newest is the lowest.
func subject(name string, capacity device.Size, c buddy.Config) props.Subject {
	if c.BlockBytes == 0 {
		c.BlockBytes = 256
	}
	c, err := c.WithDefaults()
	if err != nil {
		panic(err)
	}
	on := sim.Config{Capacity: capacity, Align: 256, Policy: sim.TopDown}
	return props.SubjectOf(name, buddy.New, c, on, c.Promises())
}
