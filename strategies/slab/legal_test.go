package slab_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/slab"
)

// allLegal returns the slots of every legal class of a configuration, ascending, straight from the
// definition: the slabs of a size are the smallest of the grades with enough slots.
func allLegal(c slab.Config) (all []device.Size) {
	for size := c.Quantum; size < c.MaxClassBytes+c.Quantum; size += c.Quantum {
		bytes := c.SlabBytes
		for bytes < size*device.Size(c.SlabSlots) {
			bytes *= 4
		}
		if bytes%size <= bytes/device.Size(c.Waste) {
			all = append(all, size)
		}
	}
	return all
}

// leastLoss returns the fewest bytes that requests lose with the chosen classes and at most k more
// out of all, and whether any such choice serves all requests.
func leastLoss(histogram []slab.SizeCount, all, chosen []device.Size, k int) (least uint64, ok bool) {
	least, ok = loss(histogram, chosen)
	if k == 0 {
		return least, ok
	}
	for i, size := range all {
		if n, serves := leastLoss(histogram, all[i+1:], append(chosen[:len(chosen):len(chosen)], size), k-1); serves &&
			(!ok || n < least) {
			least, ok = n, true
		}
	}
	return least, ok
}

// smallConfig returns a random configuration with few classes. Half of them may waste less
// than a slot of the largest class: then not every size is a legal class.
func smallConfig(rng *rand.Rand) slab.Config {
	c := slab.Config{
		Quantum: 64, SlabBytes: 64 << rng.IntN(6), SlabSlots: 1 + rng.IntN(5), Waste: 1 + rng.IntN(40),
		MaxClassBytes: 64 + device.Size(rng.IntN(1100)), Classes: slab.ClassesPow2,
	}
	if rng.IntN(2) == 0 {
		c.Waste = c.SlabSlots + rng.IntN(100)
	}
	return c
}

// TestClassOfIsTheSmallestLegalClass tries every size in random configurations. It also compares
// the classes learned from the results of ClassOf with the best choice out of all legal classes.
func TestClassOfIsTheSmallestLegalClass(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		c, err := smallConfig(rng).WithDefaults()
		require.NoError(t, err)
		all := allLegal(c)
		served := map[device.Size]device.Size{} // the class of each size
		for size, next := device.Size(1), all; size <= c.MaxClassBytes; size++ {
			for len(next) > 0 && next[0] < size {
				next = next[1:]
			}
			k, ok := c.ClassOf(size)
			require.Equal(t, len(next) > 0, ok, "seed %d: %d in %+v", seed, size, c)
			if ok {
				require.Equal(t, next[0], k.Slot, "seed %d: %d in %+v", seed, size, c)
				served[size] = k.Slot
			}
		}
		var requests, candidates []slab.SizeCount
		for range 1 + rng.IntN(8) {
			size, count := 1+device.Size(rng.IntN(int(c.MaxClassBytes))), 1+uint64(rng.IntN(9))
			if slot, ok := served[size]; ok {
				requests = append(requests, slab.SizeCount{Size: size, Count: count})
				candidates = append(candidates, slab.SizeCount{Size: slot, Count: count})
			}
		}
		if len(requests) == 0 {
			continue
		}
		k := 1 + rng.IntN(3)
		learned := slab.Learn(candidates, k)
		got, ok := loss(requests, learned)
		require.True(t, ok, "seed %d: %v in %+v", seed, learned, c)
		want, _ := leastLoss(requests, all, nil, k)
		require.Equal(t, want, got, "seed %d: %d classes %v of %v in %+v", seed, k, learned, all, c)

		c.Classes, c.ClassSizes = "", learned
		c, err = c.WithDefaults()
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, learned, c.Promises().Boundaries, "seed %d: learned classes are legal without a change", seed)
	}
}

// TestClassOfRaisesNoFurtherThanItMust has sizes that leave too much of a slab, one of them so that
// no size with as many slots in a slab is legal.
func TestClassOfRaisesNoFurtherThanItMust(t *testing.T) {
	for _, x := range []struct {
		config     slab.Config
		size, slot device.Size
	}{
		{slab.Config{Waste: 64}, 15000, 16128},
		{slab.Config{Waste: 64}, 16129, 16384},
		// Ten slots of 768 leave 512; the next size with ten slots, 819, is not in whole quanta.
		{slab.Config{Waste: 64, SlabSlots: 1}, 513, 1024},
		{slab.Config{MaxClassBytes: 1000}, 1000, 1024},
		{slab.Config{MaxClassBytes: 1000, ClassSizes: []device.Size{1024}}, 1000, 1024},
	} {
		c, err := x.config.WithDefaults()
		require.NoError(t, err)
		k, ok := c.ClassOf(x.size)
		require.True(t, ok)
		require.Equal(t, x.slot, k.Slot, "%+v", x)
		_, ok = c.ClassOf(c.MaxClassBytes + c.Quantum)
		require.False(t, ok)
	}
}
