package slabbuddy

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/blocks"
	"github.com/vramyard/vramyard/strategies/internal/cells"
)

// Promises implements [promise.Promiser]. Promises about free blocks and about blocks outside of
// slabs are the buddy's.
func (c Config) Promises() promise.Set {
	p := mustPromise(c.blocks())
	buddy := p // without the slabs
	classes := c.cells().Classes
	// classFor returns the class that serves a request, or as many as there are for none.
	classFor := func(r alloc.Request) int {
		i, _ := slices.BinarySearchFunc(classes, r.Size, func(k cells.Class, n device.Size) int {
			return cmp.Compare(k.Slot, n)
		})
		for i < len(classes) && min(classes[i].Slot&-classes[i].Slot, classes[i].Align) < r.Align {
			i++
		}
		return i
	}
	p.Quantum = c.quantum()
	p.ExactPlacer = p.ExactPlacer && c.MagazineRounds == 0
	p.ExactNeighbours = p.ExactNeighbours && c.MagazineRounds == 0
	p.MaxGrant = func(r alloc.Request) device.Size {
		if i := classFor(r); i < len(classes) {
			return max(classes[i].Slot, buddy.MaxGrant(r))
		}
		return buddy.MaxGrant(r)
	}
	if buddy.MustMerge != nil {
		p.MustMerge = func(left, right alloc.Chunk) bool {
			return left.Owner == OwnerBuddy && right.Owner == OwnerBuddy && buddy.MustMerge(left, right)
		}
	}
	p.ClassOf = func(free alloc.Chunk) int32 {
		if free.Owner != OwnerSlab {
			return buddy.ClassOf(free)
		}
		i := slices.IndexFunc(classes, func(k cells.Class) bool { return k.Slot == free.Size })
		if free.Class == alloc.NoClass {
			return alloc.NoClass // a slab without a used slot
		}
		return int32(i)
	}
	p.SearchOrder = c.searchOrder(classes, buddy)
	p.Serves = func(free alloc.Chunk, r alloc.Request) bool {
		i := classFor(r)
		switch {
		case free.Owner != OwnerSlab:
			return buddy.Serves(free, r) || i < len(classes) && free.Class != alloc.NoClass && free.Size >= classes[i].Slab
		case free.Class == alloc.NoClass:
			free.Class = 0 // it becomes a block of the buddy again
			return i < len(classes) && free.Size >= classes[i].Slab || buddy.Serves(free, r)
		}
		return i == int(free.Class)
	}
	for _, k := range classes {
		p.Boundaries = append(p.Boundaries, k.Slot)
	}
	if c.MagazineRounds > 0 {
		p.Except = append(p.Except, promise.Exception{Invariant: "I40", Reason: "a block that is freed goes to a magazine, " +
			"where it is set aside"})
	}
	return p
}

// mustPromise returns the promises of a buddy with a valid configuration.
func mustPromise(c blocks.Config) promise.Set {
	c, err := c.WithDefaults()
	if err != nil {
		panic(err)
	}
	return c.Promises()
}

// searchOrder compares free chunks of one class: slots before blocks, the slots of one slab by
// address, and all slots of a class by address if the lowest slab is used first.
func (c Config) searchOrder(classes []cells.Class, buddy promise.Set) func(a, b alloc.Chunk) int {
	byAddress := c.Selection == cells.Lowest
	// one reports whether two slots are of one slab. Binary slabs start at multiples of
	// their size.
	one := func(a, b alloc.Chunk) bool {
		size := classes[a.Class].Slab
		return c.Family == blocks.Binary && a.Region == b.Region && a.Addr.Sub(a.Region)/size == b.Addr.Sub(b.Region)/size
	}
	return func(a, b alloc.Chunk) int {
		switch {
		case a.Owner == OwnerSlab && b.Owner == OwnerSlab:
			if a.Class != alloc.NoClass && (byAddress || one(a, b)) {
				return promise.ByAddress(a, b)
			}
			return -1
		case a.Owner == OwnerSlab || buddy.SearchOrder == nil:
			return -1
		case b.Owner == OwnerSlab:
			return 1
		}
		return buddy.SearchOrder(a, b)
	}
}
