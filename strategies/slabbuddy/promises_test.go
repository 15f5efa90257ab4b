package slabbuddy_test

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("tiny", slabbuddy.Config{RegionBytes: 4 * device.KiB, BlockBytes: 256, Segments: 1}, sim.FirstFit),
		subject("small", slabbuddy.Config{RegionBytes: 32 * device.KiB, BlockBytes: device.KiB, Segments: 2}, sim.TopDown),
		subject("medium", slabbuddy.Config{RegionBytes: device.MiB, BlockBytes: 4 * device.KiB, Segments: 4}, sim.Bump),
		subject("xdl", slabbuddy.Config{RegionBytes: 64 * device.MiB, BlockBytes: 16 * device.KiB, Segments: 32}, sim.FirstFit),
	}
}

// subject is a slab-buddy over a device with room for eight regions of either part.
func subject(name string, c slabbuddy.Config, policy sim.Policy) props.Subject {
	c.Compat = slabbuddy.CompatXDL
	unit := c.BlockBytes / 4
	grant := func(r alloc.Request) device.Size {
		switch {
		case r.Size < c.BlockBytes:
			return device.AlignUp(r.Size, unit)
		case r.Size < c.RegionBytes:
			return props.PowerOfTwo(r.Size, c.BlockBytes)
		}
		return r.Size
	}
	on := sim.Config{Capacity: 8 * c.RegionBytes, Align: 256, Policy: policy}
	return props.SubjectOf(name, slabbuddy.New, c, on, props.Promises{
		Quantum: unit,
		Honours: func(r alloc.Request) bool {
			switch {
			case r.Size < c.BlockBytes:
				return r.Align <= unit
			case r.Size < c.RegionBytes:
				return r.Align <= min(grant(r), 2*device.MiB)
			}
			return true
		},
		MaxGrant: grant,
		MustMerge: func(left, right alloc.Chunk) bool {
			if left.Owner == slabbuddy.OwnerSlab {
				return props.MergeWithin(64*unit)(left, right)
			}
			return props.MergeBuddies(left, right)
		},
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			if r.Size < c.BlockBytes {
				return c.Segments == 1 && free.Owner == slabbuddy.OwnerSlab && free.Size >= grant(r)
			}
			return r.Size < c.RegionBytes && free.Owner == slabbuddy.OwnerBuddy && free.Size >= grant(r)
		},
		FreeReleases: true,
		Boundaries: []device.Size{
			unit, 2 * unit, 3 * unit, c.BlockBytes, 2 * c.BlockBytes, c.RegionBytes / 2, c.RegionBytes, 2 * c.RegionBytes,
		},
	})
}
