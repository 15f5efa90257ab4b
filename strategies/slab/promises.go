package slab

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

func (c Config) Promises() promise.Set {
	classes := c.classes()
	sizes := make([]device.Size, len(classes))
	grades := make([]device.Size, 0, len(classes)) // sizes of slabs, which a chunk's owner counts
	for i, k := range classes {
		sizes[i] = k.Slot
		if n := len(grades); n == 0 || grades[n-1] != k.Slab {
			grades = append(grades, k.Slab)
		}
	}
	// classFor returns the class that serves a request; one of no bytes if a region of its
	// own does.
	classFor := func(r alloc.Request) cells.Class {
		i, _ := slices.BinarySearch(sizes, r.Size)
		for ; i < len(sizes); i++ {
			if min(sizes[i]&-sizes[i], classes[i].Align) >= r.Align {
				return classes[i]
			}
		}
		return cells.Class{}
	}
	return promise.Set{
		Quantum: c.Quantum,
		Honours: func(r alloc.Request) bool { return r.Align <= c.align() },
		MaxGrant: func(r alloc.Request) device.Size {
			if k := classFor(r); k.Slot != 0 {
				return k.Slot
			}
			size := device.AlignUp(r.Size, c.Quantum)
			if c.LargeWaste != 0 {
				size = mostKept(size, c.LargeWaste)
			}
			return size
		},
		SearchOrder: c.searchOrder(),
		Serves: func(free alloc.Chunk, r alloc.Request) bool {
			k := classFor(r)
			if free.Class == alloc.NoClass && int(free.Owner) < len(grades) {
				return grades[free.Owner] == k.Slab // a slice becomes a slab of any class of its grade
			}
			if free.Class == alloc.NoClass { // a kept region
				size := device.AlignUp(r.Size, c.Quantum)
				return k.Slot == 0 && free.Size >= size && free.Size <= mostKept(size, c.LargeWaste)
			}
			return free.Size == k.Slot && (c.Segments == 1 || c.Steal != StealOff)
		},
		ClassOf: func(free alloc.Chunk) int32 {
			if free.Class == alloc.NoClass {
				return alloc.NoClass // a slice, a slab without a used slot, or a kept region
			}
			i, _ := slices.BinarySearch(sizes, free.Size)
			return int32(i)
		},
		ExactNeighbours: c.MagazineRounds == 0,
		ExactPlacer:     c.MagazineRounds == 0 && (c.Segments == 1 || c.Steal != StealOff),
		FreeReleases:    true,
		Boundaries:      sizes,
		Except:          c.exceptions(),
	}
}

// searchOrder compares free slots of one class as far as a walk shows their order: by address in
// one slab, and among slabs with one segment if the lowest serves first.
func (c Config) searchOrder() func(a, b alloc.Chunk) int {
	byAddress := c.Selection == Lowest && c.Segments == 1
	slab := func(k alloc.Chunk) device.Size { return k.Addr.Sub(k.Region) / c.slabOf(k.Size) }
	return func(a, b alloc.Chunk) int {
		if a.Class != alloc.NoClass && (byAddress || a.Region == b.Region && slab(a) == slab(b)) {
			return promise.ByAddress(a, b)
		}
		return -1
	}
}

func (c Config) exceptions() (all []promise.Exception) {
	if c.Segments > 1 && c.Assign == AssignStream {
		all = append(all, promise.Exception{Invariant: "I39", Reason: "the stream of a request chooses the segment that " +
			"serves it"})
	}
	if c.MagazineRounds > 0 {
		all = append(all, promise.Exception{Invariant: "I40", Reason: "a block that is freed goes to a magazine, " +
			"where it is set aside"})
	}
	return all
}
