package slab_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies/internal/cells"
	"github.com/vramyard/vramyard/strategies/slab"
)

// loss returns what the requests of a histogram lose in classes; false if one is too large
// for all of them.
func loss(histogram []slab.SizeCount, classes []device.Size) (total uint64, ok bool) {
	for _, h := range histogram {
		if h.Count == 0 || h.Size == 0 {
			continue
		}
		i, _ := slices.BinarySearch(classes, h.Size)
		if i == len(classes) {
			return 0, false
		}
		total += uint64(classes[i]-h.Size) * h.Count
	}
	return total, true
}

// bruteForce returns the least loss of any k classes among the sizes of a histogram.
func bruteForce(histogram []slab.SizeCount, k int) uint64 {
	least := ^uint64(0)
	for set := range 1 << len(histogram) {
		var classes []device.Size
		for i, h := range histogram {
			if set>>i&1 != 0 {
				classes = append(classes, h.Size)
			}
		}
		slices.Sort(classes)
		if len(classes) <= k {
			if n, ok := loss(histogram, classes); ok {
				least = min(least, n)
			}
		}
	}
	return least
}

// TestLearnLosesTheLeast compares with every choice that there is.
func TestLearnLosesTheLeast(t *testing.T) {
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var histogram []slab.SizeCount
		for range 1 + rng.IntN(9) {
			histogram = append(histogram, slab.SizeCount{Size: device.Size(1 + rng.IntN(40)), Count: uint64(rng.IntN(20))})
		}
		for k := 1; k <= len(histogram); k++ {
			classes := slab.Learn(histogram, k)
			require.LessOrEqual(t, len(classes), k)
			require.True(t, slices.IsSorted(classes))
			got, ok := loss(histogram, classes)
			require.True(t, ok, "seed %d: %v does not serve all of %v", seed, classes, histogram)
			require.Equal(t, bruteForce(histogram, k), got, "seed %d: %d classes %v of %v", seed, k, classes, histogram)
		}
	}
}

func TestLearnAtTheEdges(t *testing.T) {
	few := []slab.SizeCount{{Size: 300, Count: 2}, {Size: 100, Count: 5}, {Size: 300, Count: 1}, {Size: 7, Count: 0}}
	for name, c := range map[string]struct {
		histogram []slab.SizeCount
		k         int
		want      []device.Size
	}{
		"nothing":               {nil, 3, nil},
		"no classes":            {few, 0, nil},
		"fewer than none":       {few, -1, nil},
		"nothing asked for":     {few[3:], 1, nil},
		"one":                   {few, 1, []device.Size{300}},
		"as many as sizes":      {few, 2, []device.Size{100, 300}},
		"more than sizes":       {few, 9, []device.Size{100, 300}},
		"counts weigh":          {[]slab.SizeCount{{1, 1}, {2, 100}, {3, 1}}, 2, []device.Size{2, 3}},
		"and so do differences": {[]slab.SizeCount{{1, 1}, {1000, 1}, {1001, 1}}, 2, []device.Size{1, 1001}},
	} {
		require.Equal(t, c.want, slab.Learn(c.histogram, c.k), name)
	}
}

// TestLearnIsQuickForManySizes is not about seconds but about the order of growth: without
// the quadrangle inequality it would take hours.
func TestLearnIsQuickForManySizes(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred thousand sizes")
	}
	rng := rand.New(rand.NewPCG(1, 0))
	histogram := make([]slab.SizeCount, 100_000)
	for i := range histogram {
		histogram[i] = slab.SizeCount{Size: device.Size(i+1) * 256, Count: uint64(rng.IntN(1000))}
	}
	start := time.Now()
	require.Len(t, slab.Learn(histogram, 64), 64)
	t.Log(time.Since(start))
}

func TestFamilies(t *testing.T) {
	for _, c := range []struct {
		family  string
		largest device.Size
		want    []device.Size
	}{
		{slab.ClassesPow2, 2048, []device.Size{256, 512, 1024, 2048}},
		{slab.ClassesPow2, 2047, []device.Size{256, 512, 1024}},
		{slab.ClassesK2, 2048, []device.Size{256, 512, 768, 1024, 1536, 2048}},
		{slab.ClassesK4, 2048, []device.Size{256, 512, 768, 1024, 1280, 1536, 1792, 2048}},
		{slab.ClassesK8, 1024, []device.Size{256, 512, 768, 1024}},
		{slab.ClassesK8, 255, nil},
	} {
		got, err := cells.Family(c.family, 256, c.largest)
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.family)
	}
	_, err := cells.Family("k3", 256, 1024)
	require.EqualError(t, err, `slab: classes "k3": want "pow2", "k2", "k4" or "k8"`)
}

// TestFamiliesLoseWhatTheyPromise goes through every size.
func TestFamiliesLoseWhatTheyPromise(t *testing.T) {
	for family, share := range map[string]float64{
		slab.ClassesPow2: 1. / 2, slab.ClassesK2: 1. / 3, slab.ClassesK4: 1. / 5, slab.ClassesK8: 1. / 9,
	} {
		sizes, err := cells.Family(family, 1, 1<<16)
		require.NoError(t, err)
		for n := device.Size(1); n <= 1<<16; n++ {
			i, _ := slices.BinarySearch(sizes, n)
			require.Less(t, float64(sizes[i]-n), share*float64(sizes[i]), "%s: %d bytes in %d", family, n, sizes[i])
		}
	}
}

func TestLegalClasses(t *testing.T) {
	for name, c := range map[string]struct {
		sizes []device.Size
		slab  device.Size
		waste device.Size
		want  []device.Size
	}{
		"rounded up and without doubles": {[]device.Size{300, 1, 256, 512}, 4096, 8, []device.Size{256, 512}},
		"just within":                    {[]device.Size{14 * 256}, 16 * 256, 8, []device.Size{14 * 256}},
		"raised no further than it must be": {[]device.Size{6 * 256, 13 * 256}, 16 * 256, 8,
			[]device.Size{7 * 256, 14 * 256}},
		"three to a slab":         {[]device.Size{18 * 256}, 64 * 256, 8, []device.Size{19 * 256}},
		"no slot in whole quanta": {[]device.Size{200}, 200, 8, nil},
		"out of the slab":         {[]device.Size{0, 4097}, 4096, 8, nil},
		"still too much":          {[]device.Size{5 * 256}, 16 * 256, 64, nil},
		"4096 slots":              {[]device.Size{256}, 4096 * 256, 8, []device.Size{256}},
		"too many slots":          {[]device.Size{256, 512}, 8192 * 256, 8, []device.Size{512}},
	} {
		require.Equal(t, c.want, slab.Legal(c.sizes, c.slab, 256, c.waste), name)
	}
}
