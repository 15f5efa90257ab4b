package buddy

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
		var s places
		s.reserve(n)
		var want []uint32
		for range 2000 {
			i := uint32(rng.IntN(n))
			if at, ok := slices.BinarySearch(want, i); ok {
				want = slices.Delete(want, at, at+1)
				require.Equal(t, len(want) == 0, s.remove(i))
			} else {
				want = slices.Insert(want, at, i)
				require.Equal(t, len(want) == 1, s.add(i))
			}
			mustBe(t, &s, want, uint32(rng.IntN(n)))
		}
		mustBe(t, &s, want, uint32(n-1))
		require.Equal(t, len(want), s.len())
		require.Equal(t, want, slices.AppendSeq([]uint32{}, s.all))
		s.clear()
		mustBe(t, &s, nil, 0)
	}
}

// mustBe compares every answer about the members and about the number i.
func mustBe(t *testing.T, s *places, want []uint32, i uint32) {
	t.Helper()
	require.True(t, s.sound())
	at, has := slices.BinarySearch(want, i)
	require.Equal(t, has, s.has(i))
	require.Equal(t, slices.Contains(want, i^1), s.has(i^1), "a buddy may lie beyond the end")
	got, ok := s.next(i)
	require.Equal(t, at < len(want), ok)
	if ok {
		require.Equal(t, want[at], got)
	}
	if len(want) > 0 {
		require.Equal(t, want[0], s.min())
		require.Equal(t, want[len(want)-1], s.max())
	}
}

// TestPlacesServeLargerAndSmallerRegions uses one record for regions of several sizes.
func TestPlacesServeLargerAndSmallerRegions(t *testing.T) {
	var s places
	for _, n := range []int{64, 65, 3, 4096, 64, 4097, 1, 70, 100_000} {
		s.reserve(n)
		last := uint32(n - 1)
		require.True(t, s.add(last))
		mustBe(t, &s, []uint32{last}, 0)
		require.True(t, s.remove(last))
		mustBe(t, &s, nil, last)
	}
}

// TestSoundPlaces spoils the summary in both ways.
func TestSoundPlaces(t *testing.T) {
	var s places
	s.reserve(4096)
	s.add(1000)
	for _, bit := range []uint64{1 << 15, 1 << 3, 1 << 63} {
		s.top ^= bit
		require.False(t, s.sound(), "%x", bit)
		s.top ^= bit
	}
	require.True(t, s.sound())
}

// TestRecordsAreCountedInFull holds the sizes that MetadataBytes counts to the records.
func TestRecordsAreCountedInFull(t *testing.T) {
	for _, c := range []struct {
		record any
		bytes  int
	}{{region{}, regionBytes}, {places{}, placesBytes}, {list{}, listBytes}, {link{}, linkBytes}} {
		require.Equal(t, int(reflect.TypeOf(c.record).Size()), c.bytes, "%T", c.record)
	}
}
