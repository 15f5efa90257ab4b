package index_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// capacities are around each number of levels and around word ends.
var capacities = []int{1, 2, 63, 64, 65, 127, 4095, 4096, 4097, 262_143, 262_144, 262_145}

func TestAgreesWithSortedSlice(t *testing.T) {
	for _, room := range capacities {
		rng := rand.New(rand.NewPCG(uint64(room), 1))
		s := index.NewBitSet(room)
		var want []uint32
		for range 2000 {
			i := uint32(rng.IntN(room))
			if at, ok := slices.BinarySearch(want, i); rng.IntN(3) == 0 {
				s.Remove(i)
				if ok {
					want = slices.Delete(want, at, at+1)
				}
			} else {
				s.Add(i)
				if !ok {
					want = slices.Insert(want, at, i)
				}
			}
			mustAgree(t, &s, want, uint32(rng.IntN(room)))
		}
		require.Equal(t, want, slices.AppendSeq([]uint32{}, s.All))
		s.Clear()
		mustAgree(t, &s, nil, 0)
	}
}

// mustAgree compares every answer about the members and about the number i.
func mustAgree(t *testing.T, s *index.BitSet, want []uint32, i uint32) {
	t.Helper()
	at, has := slices.BinarySearch(want, i)
	require.Equal(t, has, s.Has(i))
	require.Equal(t, len(want), s.Len())
	expect := func(place int, got uint32, ok bool) {
		t.Helper()
		if place < 0 || place >= len(want) {
			require.False(t, ok)
			return
		}
		require.True(t, ok)
		require.Equal(t, want[place], got)
	}
	got, ok := s.Min()
	expect(0, got, ok)
	got, ok = s.Max()
	expect(len(want)-1, got, ok)
	got, ok = s.Next(i)
	expect(at, got, ok)
	if !has {
		at--
	}
	got, ok = s.Prev(i)
	expect(at, got, ok)
}

func TestGrowKeepsTheMembers(t *testing.T) {
	var s index.BitSet
	var want []uint32
	for _, room := range capacities {
		s.Grow(room)
		s.Add(uint32(room - 1))
		want = append(want, uint32(room-1))
		require.GreaterOrEqual(t, s.Room(), room)
		mustAgree(t, &s, want, uint32(room/2))
	}
	s.Grow(5)
	require.Equal(t, want, slices.Collect(s.All))
}

// TestFarApartCostsLittle has two members in a room for whose bitmap 256 MiB would be needed.
func TestFarApartCostsLittle(t *testing.T) {
	s := index.NewBitSet(math.MaxInt32)
	s.Add(7)
	s.Add(math.MaxInt32 - 1)
	mustAgree(t, &s, []uint32{7, math.MaxInt32 - 1}, 1<<30)
	require.Less(t, s.Bytes(), 272*device.KiB)
	s.Remove(math.MaxInt32 - 1)
	mustAgree(t, &s, []uint32{7}, math.MaxInt32-1)
}

// TestScatteredMembersCostLittle has one member in each page, for which whole pages would take 4
// MiB.
func TestScatteredMembersCostLittle(t *testing.T) {
	s := index.NewBitSet(1 << 25)
	var want []uint32
	for i := uint32(0); i < 1<<25; i += 4096 {
		s.Add(i + i>>12&63<<6)
		want = append(want, i+i>>12&63<<6)
	}
	require.Equal(t, want, slices.Collect(s.All))
	require.Less(t, s.Bytes(), 256*device.KiB)
}

// TestPagesFillAndEmpty gives each word of a page a member and takes it again, in a large and in a
// small set, and in one that grows in between.
func TestPagesFillAndEmpty(t *testing.T) {
	for _, room := range []int{4096, 1 << 18, 1 << 20} {
		for _, grown := range []int{0, 1 << 21} {
			rng := rand.New(rand.NewPCG(uint64(room), 3))
			s := index.NewBitSet(room)
			order := rng.Perm(64)
			var want []uint32
			for _, w := range order {
				s.Add(uint32(w<<6 + w))
				want = append(want, uint32(w<<6+w))
				slices.Sort(want)
				mustAgree(t, &s, want, uint32(rng.IntN(4096)))
				require.Equal(t, want, slices.Collect(s.All))
			}
			s.Grow(grown)
			for _, w := range order {
				s.Remove(uint32(w<<6 + w))
				at, _ := slices.BinarySearch(want, uint32(w<<6+w))
				want = slices.Delete(want, at, at+1)
				mustAgree(t, &s, want, uint32(rng.IntN(4096)))
			}
			full := s.Bytes()
			for i := range uint32(4096) {
				s.Add(i)
			}
			s.Clear()
			mustAgree(t, &s, nil, 0)
			s.Add(4095)
			mustAgree(t, &s, []uint32{4095}, 64)
			require.LessOrEqual(t, s.Bytes(), full+4*device.KiB)
		}
	}
}

// TestEmptyPagesAreUsedAgain moves one member through a room for whose bitmap 16 MiB would be
// needed.
func TestEmptyPagesAreUsedAgain(t *testing.T) {
	s := index.NewBitSet(1 << 27)
	empty := s.Bytes()
	for i := uint32(0); i < 1<<27; i += 4096 {
		s.Add(i)
		mustAgree(t, &s, []uint32{i}, i)
		s.Remove(i)
	}
	require.Less(t, s.Bytes(), empty+2048)
}

func TestNumbersOutsideTheCapacityAreAbsent(t *testing.T) {
	var none index.BitSet
	_, ok := none.Next(0)
	require.False(t, ok)
	_, ok = none.Prev(7)
	require.False(t, ok)
	require.False(t, none.Has(0))
	none.Remove(3)
	require.Zero(t, none.Len())

	s := index.NewBitSet(100)
	s.Add(99)
	_, ok = s.Next(100)
	require.False(t, ok)
	got, ok := s.Prev(4_000_000_000)
	require.True(t, ok)
	require.EqualValues(t, 99, got)
}

// BenchmarkReplace times what an allocator does to its set of free places: find one, take
// it, put another in.
func BenchmarkReplace(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 14, 1 << 18, 1 << 22} {
		b.Run("room="+roomName(n), func(b *testing.B) {
			s := index.NewBitSet(n)
			rng := rand.New(rand.NewPCG(1, 2))
			for range n / 4 {
				s.Add(uint32(rng.IntN(n)))
			}
			b.ReportMetric(float64(s.Bytes())/float64(n), "B/number")
			for b.Loop() {
				i, ok := s.Next(uint32(rng.IntN(n)))
				if ok {
					s.Remove(i)
				}
				s.Add(uint32(rng.IntN(n)))
			}
		})
	}
}

// roomName names a room by its power of two.
func roomName(n int) string {
	names := map[int]string{1 << 10: "1Ki", 1 << 14: "16Ki", 1 << 18: "256Ki", 1 << 22: "4Mi"}
	return names[n]
}
