package buddy_test

import (
	"cmp"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/buddy"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("tiny", buddy.Config{Compat: buddy.CompatXDL, RegionBytes: 4 * device.KiB, BlockBytes: 256}),
		subject("small", buddy.Config{Compat: buddy.CompatXDL, RegionBytes: device.MiB, BlockBytes: 4 * device.KiB}),
		subject("xdl", buddy.Config{Compat: buddy.CompatXDL, RegionBytes: device.GiB, BlockBytes: 16 * device.KiB}),
	}
}

// subject is a buddy over a device with room for eight regions, which may touch.
func subject(name string, c buddy.Config) props.Subject {
	grant := func(r alloc.Request) device.Size { return props.PowerOfTwo(r.Size, c.BlockBytes) }
	on := sim.Config{Capacity: 8 * c.RegionBytes, Align: 256, Policy: sim.TopDown} // the oldest region is the highest
	return props.SubjectOf(name, buddy.New, c, on, props.Promises{
		Quantum:   c.BlockBytes,
		Honours:   func(r alloc.Request) bool { return r.Align <= min(grant(r), 2*device.MiB) },
		MaxGrant:  grant,
		MustMerge: props.MergeBuddies,
		ClassOf:   func(free alloc.Chunk) int32 { return int32(bits.TrailingZeros64(uint64(free.Size / c.BlockBytes))) },
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Region != b.Region {
				return cmp.Compare(b.Region, a.Region)
			}
			return props.ByAddress(a, b)
		},
		Serves:     func(c alloc.Chunk, r alloc.Request) bool { return c.Size >= grant(r) },
		Boundaries: props.PowersOfTwo(c.BlockBytes, c.RegionBytes),
	})
}
