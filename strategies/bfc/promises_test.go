package bfc_test

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// subjects are the configurations that the property suite runs, with what each promises.
func subjects() []props.Subject {
	return []props.Subject{
		subject("default", bfc.Config{}),
		subject("growth", bfc.Config{AllowGrowth: true}),
		subject("gc", bfc.Config{AllowGrowth: true, GarbageCollection: true}),
		subject("vmm", bfc.Config{AllowGrowth: true, CoalesceRegions: true}),
		subject("vmm-gc", bfc.Config{AllowGrowth: true, CoalesceRegions: true, GarbageCollection: true}),
		subject("fraction", bfc.Config{AllowGrowth: true, FragmentationFraction: 0.001}),
		subject("timing", bfc.Config{AllowGrowth: true, Timing: true}),
		subject("timing-gc", bfc.Config{AllowGrowth: true, Timing: true, GarbageCollection: true}),
		subject("timing-vmm", bfc.Config{AllowGrowth: true, Timing: true, CoalesceRegions: true}),
		subject("2016", bfc.Config{Variant: bfc.V2016}),
		subject("2016-growth", bfc.Config{Variant: bfc.V2016, AllowGrowth: true}),
		subject("2026", bfc.Config{Variant: bfc.V2026}),
		subject("2026-growth-gc", bfc.Config{Variant: bfc.V2026, AllowGrowth: true, GarbageCollection: true}),
		subject("2026-timing", bfc.Config{Variant: bfc.V2026, AllowGrowth: true, Timing: true}),
		subject("spatial", bfc.Config{Variant: bfc.V2026, Spatial: true}),
		subject("spatial-gc", bfc.Config{Variant: bfc.V2026, Spatial: true, GarbageCollection: true}),
		subject("spatial-timing", bfc.Config{Variant: bfc.V2026, Spatial: true, Timing: true}),
		subject("mended", bfc.Config{AllowGrowth: true, Mended: true}),
		subject("mended-timing-gc", bfc.Config{AllowGrowth: true, Mended: true, Timing: true, GarbageCollection: true}),
		subject("mended-spatial", bfc.Config{Variant: bfc.V2026, Spatial: true, Mended: true}),
	}
}

// subject is a BFC with a limit of 16 MiB, over a device of 12 or of 24 so that one or the
// other runs out first.
func subject(name string, c bfc.Config) props.Subject {
	const unit device.Size = 256
	c.Limit = 16 * device.MiB
	waste := c.Limit
	if c.FragmentationFraction > 0 {
		waste = device.Size(c.FragmentationFraction * float64(c.Limit))
	}
	round := func(r alloc.Request) device.Size { return device.AlignUp(r.Size, unit) }
	p := props.Promises{
		Quantum:  unit,
		Honours:  func(r alloc.Request) bool { return c.Variant == bfc.V2026 || r.Align <= unit },
		MaxGrant: func(r alloc.Request) device.Size { return round(r) + min(round(r)-unit, waste) },
		ClassOf: func(free alloc.Chunk) int32 {
			if free.Owner == bfc.OwnerGap {
				return alloc.NoClass
			}
			return int32(min(bits.Len64(uint64(free.Size/unit))-1, 20))
		},
		MustMerge: props.MergeAll,
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Owner != b.Owner {
				return -1
			}
			return props.BySizeThenAddress(a, b)
		},
		Serves:       serves(c),
		JoinsRegions: c.CoalesceRegions,
		Boundaries:   props.PowersOfTwo(unit, 16*device.MiB),
	}
	if c.Timing {
		p.MustMerge = props.MergeSafe
	}
	p.Except = exceptions(c)
	capacity := 12 * device.MiB
	if c.Timing || c.Mended || c.Variant == bfc.V2016 && c.AllowGrowth {
		capacity = 24 * device.MiB
	}
	return props.SubjectOf(name, bfc.New, c, sim.Config{Capacity: capacity, Align: unit}, p)
}

// exceptions returns what the originals do not keep.
func exceptions(c bfc.Config) (all []props.Exception) {
	if c.Timing && !c.Mended {
		all = append(all, props.Exception{Number: props.ICoalescing,
			Reason: "a sweep absorbs one neighbour on each side, so of three chunks that become safe at once one is left apart"})
	}
	if c.Variant == bfc.V2016 {
		const tail = "after a refusal the region is recorded one step smaller than what the device gave; the tail is lost"
		all = append(all,
			props.Exception{Number: props.IRegions, Reason: tail},
			props.Exception{Number: props.IDeviceAccount, Reason: tail})
	}
	if c.Variant == bfc.V2016 && c.AllowGrowth {
		all = append(all, props.Exception{Number: props.ILimit,
			Reason: "the next region is asked for whole, whatever is left of the limit"})
	}
	return all
}

// serves returns which free chunks must serve a request: in a two-ended arena those of the
// end that is asked for, and the gap.
func serves(c bfc.Config) func(alloc.Chunk, alloc.Request) bool {
	fits := props.ServesAnywhere(256)
	return func(free alloc.Chunk, r alloc.Request) bool {
		end := bfc.OwnerLower
		if r.Hint == alloc.HintHigh {
			end = bfc.OwnerUpper
		}
		return fits(free, r) && (!c.Spatial || free.Owner == bfc.OwnerGap || free.Owner == end)
	}
}
