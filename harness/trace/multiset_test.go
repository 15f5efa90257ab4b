package trace

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// TestMultisetCountsLikeAList compares ranks with those of a sorted list, over numbers of which few
// or many are different, up to the largest.
func TestMultisetCountsLikeAList(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		var b multiset
		var list []uint64
		mask := uint64(math.MaxUint64) >> rng.IntN(64)
		for range rng.IntN(40_000) {
			v := rng.Uint64() & mask
			b.add(v)
			list = append(list, v)
		}
		slices.Sort(list)
		n := len(list)
		if b.count != n {
			t.Fatalf("seed %d: %d numbers, want %d", seed, b.count, n)
		}
		if n == 0 {
			continue
		}
		places := []int{0, 0, n / 3, n / 2, n - 1}
		var want []uint64
		for _, p := range places {
			want = append(want, list[p])
		}
		if got := b.ranks(places...); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
		median, tenth, most := b.spread()
		if median != list[(n-1)/2] || tenth != list[(n*9+9)/10-1] || most != list[n-1] {
			t.Fatalf("seed %d: %d %d %d of %d numbers", seed, median, tenth, most, n)
		}
		if distinct := len(slices.Compact(list)); b.distinct != distinct {
			t.Fatalf("seed %d: %d distinct, want %d", seed, b.distinct, distinct)
		}
	}
}

// TestMultisetTakesFewBytes holds a bag to its promise: what it keeps grows with the different
// numbers alone.
func TestMultisetTakesFewBytes(t *testing.T) {
	var b multiset
	for i := range uint64(2_000_000) {
		b.add(i * i % 1009)
	}
	b.pack()
	if n := cap(b.packed) + cap(b.spare) + 8*cap(b.pending); n > 64<<10 {
		t.Errorf("%d bytes for %d different numbers", n, b.distinct)
	}
}
