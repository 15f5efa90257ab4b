package slabbuddy_test

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/buddy"
	"github.com/vramyard/vramyard/strategies/slab"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("tiny", 48*device.KiB, slabbuddy.Config{
			BlockBytes: 256, RegionBytes: 4 * device.KiB, SlabMaxBytes: 512, SlabSlots: 4, DirectBytes: 8 * device.KiB,
			DirectCacheBytes: 12 * device.KiB, EmptySlabs: 1, Trim: buddy.TrimOn,
		}),
		subject("magazines", 64*device.KiB, slabbuddy.Config{
			// Slabs of the largest classes are larger than what gets a region of its own.
			BlockBytes: 128, RegionBytes: 2 * device.KiB, SlabMaxBytes: 8 * device.KiB, SlabSlots: 3, Classes: slab.ClassesPow2,
			MagazineRounds: 3, Depot: 1, EmptySlabs: 2, Selection: slab.Lifo, Growth: "request", Placement: buddy.SmallestNewest,
			DirectBytes: 16 * device.KiB, DirectCacheBytes: 1, Coalescing: buddy.Lazy,
		}),
		subject("weighted", 96*device.KiB, slabbuddy.Config{
			BlockBytes: 256, RegionBytes: 6 * device.KiB, SlabMaxBytes: 3000, SlabSlots: 3, SlabWaste: 4,
			Classes: slab.ClassesK2,
			Trim:    buddy.TrimOn, Family: buddy.Weighted, Placement: buddy.Leftmost, RegionChoice: buddy.Fullest,
			Growth:  "fixed",
			Release: true, KeepBytes: 8 * device.KiB, Selection: slab.Lowest, DirectBytes: 1 << 60,
		}),
		subject("k4", 96*device.KiB, slabbuddy.Config{
			BlockBytes: 512, RegionBytes: 9 * device.KiB, SlabMaxBytes: 2 * device.KiB, SlabWaste: 32, Classes: slab.ClassesK8,
			Family: buddy.FourPerDoubling, Placement: buddy.TopDown, RegionChoice: buddy.Lowest, Growth: "doubling",
			Coalescing: buddy.OnFailure, Release: true, Selection: slab.Emptiest, EmptySlabs: 1, DirectBytes: 20 * device.KiB,
		}),
		subject("fibonacci", 96*device.KiB, slabbuddy.Config{
			BlockBytes: 256, RegionBytes: 5 * device.KiB, SlabMaxBytes: device.KiB, SlabSlots: 1, Family: buddy.Fibonacci,
			MagazineRounds: 2, Selection: slab.Fifo, DirectBytes: 12 * device.KiB,
		}),
		subject("whole", 128*device.KiB, slabbuddy.Config{
			BlockBytes: 256, RegionBytes: 256, SlabMaxBytes: 2 * device.KiB, SlabSlots: 4, Growth: "whole", Limit: 100_000,
			Family: buddy.EightPerDoubling, DirectBytes: 16 * device.KiB,
		}),
		subject("kept", 2*device.MiB, slabbuddy.Config{
			// Large slabs lie in regions of their own, some in kept ones that are larger.
			BlockBytes: 128, RegionBytes: 3 * device.KiB, SlabMaxBytes: 8 * device.KiB, SlabSlots: 4, Classes: slab.ClassesPow2,
			DirectBytes: 8 * device.KiB, DirectCacheBytes: 1 << 60, EmptySlabs: 1, MagazineRounds: 1, Growth: "request",
		}),
		subject("bare", 16*device.MiB, slabbuddy.Config{}),
	}
}

// subject is a slab-buddy over a device of n bytes.
func subject(name string, n device.Size, c slabbuddy.Config) props.Subject {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err) // a mistake in the list above
	}
	return props.SubjectOf(name, slabbuddy.New, c, sim.Config{Capacity: n, Align: 256, Policy: sim.TopDown}, c.Promises())
}
