package slab_test

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/slab"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		runs("xdl-one-segment", slab.Config{Segments: 1, UnitBytes: 256, RegionBytes: 16 * device.KiB}, 1),
		runs("xdl-three-segments", slab.Config{Segments: 3, UnitBytes: 512, RegionBytes: 192 * device.KiB}, 1),
		runs("xdl-odd-unit", slab.Config{Segments: 2, UnitBytes: 768, RegionBytes: 96 * device.KiB}, 1),
		runs("xdl-tiny", slab.Config{Segments: 32, UnitBytes: 1, RegionBytes: 2 * device.KiB}, 1),
		runs("xdl", slab.Config{Segments: 32, UnitBytes: 4 * device.KiB, RegionBytes: 16 * device.MiB}, 2),
		lists("blaze-tiny", slab.Config{MinClassBytes: 2, MaxClassBytes: device.KiB, RegionBytes: 4 * device.KiB}),
		lists("blaze-aligned", slab.Config{MinClassBytes: 256, MaxClassBytes: 64 * device.KiB, RegionBytes: 192 * device.KiB}),
		lists("blaze", slab.Config{MinClassBytes: 2, MaxClassBytes: 256 * device.MiB, RegionBytes: device.GiB}),
	}
}

// runs is a slab of mode "xdl" over a device with room for some regions.
func runs(name string, c slab.Config, regions device.Size) props.Subject {
	c.Compat = slab.CompatXDL
	p := props.Promises{
		Quantum:   c.UnitBytes,
		Honours:   func(r alloc.Request) bool { return r.Align <= c.UnitBytes&-c.UnitBytes },
		MaxGrant:  func(r alloc.Request) device.Size { return (r.Size + c.UnitBytes - 1) / c.UnitBytes * c.UnitBytes },
		MustMerge: props.MergeWithin(64 * c.UnitBytes),
	}
	for n := range device.Size(5) {
		p.Boundaries = append(p.Boundaries, n*c.UnitBytes)
	}
	if c.Segments == 1 { // with more, a free run may belong to a segment whose turn it was not
		p.Serves = func(free alloc.Chunk, r alloc.Request) bool { return free.Size >= p.MaxGrant(r) }
	}
	return props.SubjectOf(name, slab.New, c, sim.Config{Capacity: regions * c.RegionBytes, Align: 256, Policy: sim.TopDown}, p)
}

// lists is a slab of mode "blaze" over a device with room for four regions.
func lists(name string, c slab.Config) props.Subject {
	c.Compat = slab.CompatBlaze
	grant := func(r alloc.Request) device.Size { return props.PowerOfTwo(r.Size, c.MinClassBytes) }
	return props.SubjectOf(name, slab.New, c, sim.Config{Capacity: 4 * c.RegionBytes, Align: 256}, props.Promises{
		Quantum:  c.MinClassBytes,
		ZeroSize: true,
		Honours:  func(r alloc.Request) bool { return r.Align <= c.MinClassBytes },
		MaxGrant: grant,
		ClassOf: func(free alloc.Chunk) int32 {
			if free.Class == alloc.NoClass {
				return alloc.NoClass // what is not yet cut
			}
			return int32(bits.TrailingZeros64(uint64(free.Size)))
		},
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			return free.Size == grant(r) && free.Class != alloc.NoClass || free.Size >= grant(r) && free.Class == alloc.NoClass
		},
		Boundaries: props.PowersOfTwo(c.MinClassBytes, c.MaxClassBytes),
	})
}
