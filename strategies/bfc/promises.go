package bfc

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

func (c Config) Promises() promise.Set {
	waste := c.mostWaste()
	p := promise.Set{
		Quantum: unit,
		Honours: func(r alloc.Request) bool { return c.Variant == V2026 || r.Align <= unit },
		MaxGrant: func(r alloc.Request) device.Size {
			n := device.AlignUp(r.Size, unit)
			if c.Spatial && r.Hint == alloc.HintHigh {
				return n
			}
			return n + min(n-unit, waste)
		},
		ClassOf: func(free alloc.Chunk) int32 {
			if free.Owner == OwnerGap {
				return alloc.NoClass
			}
			return int32(min(bits.Len64(uint64(free.Size/unit)), numBins)) - 1
		},
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ExactPlacer:     !c.Timing && !c.Spatial,
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Owner != b.Owner {
				return -1
			}
			return promise.BySizeThenAddress(a, b)
		},
		Serves:       c.serves(),
		Stamped:      c.Timing,
		FreesNull:    true,
		JoinsRegions: c.CoalesceRegions,
		Boundaries:   promise.PowersOfTwo(unit, min(c.Limit, device.TiB)),
		Except:       c.exceptions(),
	}
	if c.Timing {
		p.MustMerge = promise.MergeSafe
	}
	return p
}

// mostWaste returns the most that a block may have beyond the rounded request: less than
// the limit on waste, in whole units.
func (c Config) mostWaste() device.Size {
	waste := wasteLimit(c)
	if waste > maxRequest {
		return waste
	}
	return max(device.AlignUp(waste, unit), unit) - unit
}

// exceptions returns the invariants that the originals break.
func (c Config) exceptions() (all []promise.Exception) {
	if c.Timing && !c.Mended {
		all = append(all, promise.Exception{Invariant: "I5",
			Reason: "a sweep absorbs one neighbour on each side, so of three chunks that become safe at once one is left apart"})
	}
	if c.Variant == V2016 {
		const tail = "after a refusal the region is recorded one step smaller than what the device gave; the tail is lost"
		all = append(all,
			promise.Exception{Invariant: "I2", Reason: tail},
			promise.Exception{Invariant: "I19", Reason: tail},
			promise.Exception{Invariant: "I20", Reason: "the next region is requested whole, regardless of the limit"})
	}
	return all
}

// serves returns the predicate of free chunks that must serve a request: in a two-ended arena, the
// chunks of the requested end and the gap.
func (c Config) serves() func(alloc.Chunk, alloc.Request) bool {
	fits := promise.ServesAnywhere(unit)
	return func(free alloc.Chunk, r alloc.Request) bool {
		end := OwnerLower
		if r.Hint == alloc.HintHigh {
			end = OwnerUpper
		}
		return fits(free, r) && (!c.Spatial || free.Owner == OwnerGap || free.Owner == end)
	}
}
