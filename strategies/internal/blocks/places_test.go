package blocks

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlacesAgreeWithSortedSlice has each shape with as few and as many numbers as it takes.
func TestPlacesAgreeWithSortedSlice(t *testing.T) {
	for _, n := range []int{1, 2, 63, 64, 65, 128, 4095, 4096, 4097, 20_000} {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		p, s := new(store), new(places)
		p.reserve(s, n)
		var want []uint32
		for range 2000 {
			i := uint32(rng.IntN(n))
			if at, ok := slices.BinarySearch(want, i); ok {
				want = slices.Delete(want, at, at+1)
				require.Equal(t, len(want) == 0, p.remove(s, i))
				if len(want) > 0 && rng.IntN(4) == 0 {
					least := p.min(s)
					last := p.remove(s, least)
					require.Equal(t, want[0], least)
					want = want[1:]
					require.Equal(t, len(want) == 0, last)
				}
			} else {
				want = slices.Insert(want, at, i)
				p.add(s, i)
			}
			mustBe(t, p, s, want, uint32(rng.IntN(n)))
		}
		mustBe(t, p, s, want, uint32(n-1))
		require.Equal(t, len(want), p.len(s))
		require.Equal(t, want, slices.AppendSeq([]uint32{}, p.all(s)))
		p.clear(s)
		mustBe(t, p, s, nil, 0)
	}
}

// mustBe compares every answer about the members and about the number i.
func mustBe(t *testing.T, p *store, s *places, want []uint32, i uint32) {
	t.Helper()
	require.True(t, p.sound(s))
	at, has := slices.BinarySearch(want, i)
	require.Equal(t, has, p.has(s, i))
	require.Equal(t, slices.Contains(want, i^1), p.has(s, i^1), "a buddy may lie beyond the end")
	got, ok := p.next(s, i)
	require.Equal(t, at < len(want), ok)
	if ok {
		require.Equal(t, want[at], got)
	}
	if len(want) > 0 {
		require.Equal(t, want[0], p.min(s))
		require.Equal(t, want[len(want)-1], p.max(s))
	}
}

// TestPlacesServeLargerAndSmallerRegions uses one record for regions of several sizes.
func TestPlacesServeLargerAndSmallerRegions(t *testing.T) {
	p, s := new(store), new(places)
	for _, n := range []int{64, 65, 3, 4096, 64, 4097, 1, 70, 100_000} {
		p.reserve(s, n)
		last := uint32(n - 1)
		p.add(s, last)
		mustBe(t, p, s, []uint32{last}, 0)
		require.True(t, p.remove(s, last))
		mustBe(t, p, s, nil, last)
	}
}

// TestSoundPlaces spoils the summary in both ways.
func TestSoundPlaces(t *testing.T) {
	p, s := new(store), new(places)
	p.reserve(s, 4096)
	p.add(s, 1000)
	for _, bit := range []uint64{1 << 15, 1 << 3, 1 << 63} {
		s.top ^= bit
		require.False(t, p.sound(s), "%x", bit)
		s.top ^= bit
	}
	require.True(t, p.sound(s))
}

// TestRecordsAreCountedInFull holds the sizes that MetadataBytes counts to the records.
func TestRecordsAreCountedInFull(t *testing.T) {
	for _, c := range []struct {
		record any
		bytes  int
	}{{region{}, regionBytes}, {listing{}, listingBytes}, {places{}, placesBytes}, {list{}, listBytes},
		{link{}, linkBytes}} {
		require.Equal(t, int(reflect.TypeOf(c.record).Size()), c.bytes, "%T", c.record)
	}
}

// TestLevelsAgreeWithSortedSlices has a tree with few levels and with all of them.
func TestLevelsAgreeWithSortedSlices(t *testing.T) {
	for depth := 1; depth <= upperLevels; depth++ {
		rng := rand.New(rand.NewPCG(uint64(depth), 2))
		p, s := new(store), new(places)
		want := make([][]uint32, depth)
		for range 3000 {
			k := rng.IntN(depth)
			i := uint32(1<<k + rng.IntN(1<<k))
			if at, ok := slices.BinarySearch(want[k], i); ok {
				want[k] = slices.Delete(want[k], at, at+1)
				require.Equal(t, len(want[k]) == 0, p.dropOf(s, i, uint8(k)) == 1)
			} else {
				want[k] = slices.Insert(want[k], at, i)
				p.add(s, i)
			}
			require.True(t, p.sound(s))
			for k, all := range want {
				require.Equal(t, len(all), p.lenOf(s, uint8(k)))
				if len(all) > 0 {
					require.Equal(t, all[0], p.lowestOf(s, uint8(k)))
					require.Equal(t, all[len(all)-1], p.highestOf(s, uint8(k)))
				}
			}
		}
	}
}
