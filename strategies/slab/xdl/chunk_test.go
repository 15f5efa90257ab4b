package xdl

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/oracle"
	"github.com/vramyard/vramyard/kit/front"
)

// slowLongest is longest, unit by unit.
func slowLongest(free uint64) (most int) {
	for b, n := 0, 0; b < chunkUnits; b++ {
		n++
		if free>>b&1 == 0 {
			n = 0
		}
		most = max(most, n)
	}
	return most
}

func TestWordArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	words := []uint64{0, 1, 3, 7, 15, 31, 1 << 63, ^uint64(0), ^uint64(0) >> 1, ^uint64(1), 0xf0f0}
	for range 500 {
		words = append(words, rng.Uint64()|rng.Uint64(), rng.Uint64()&rng.Uint64(), ^uint64(0)>>rng.IntN(64),
			^(1 << rng.IntN(64)))
	}
	for _, w := range words {
		most := slowLongest(w)
		require.Equal(t, most, longest(w), "%#x", w)
		require.Equal(t, int32(min(4, most)), class(w), "%#x", w)
		for n := 1; n <= min(4, most); n++ {
			b := lowest(w, n)
			require.Equal(t, mask(b, n), w&mask(b, n))
			require.Less(t, slowLongest(w&(1<<(b+n-1)-1)), n, "nothing lower fits: %#x", w)
		}
		found := 0
		for b := range chunkUnits {
			if w>>b&1 != 0 {
				found = max(found, runAt(w, b))
			}
		}
		require.Equal(t, most, found)
	}
}

func TestTurnWrapsLikeTheOriginal(t *testing.T) {
	for segments, want := range map[int][]int{
		2: {1, 0, 1, 0},
		3: {1, 2, 0, 1}, // 2^31-1 is 1 modulo 3; 2^64-2^31 is 2
		5: {2, 3, 4, 0}, // 2^31-1 is 2 modulo 5; 2^64-2^31 is 3
		7: {1, 0, 1, 2}, // 2^31-1 is 1 modulo 7; 2^64-2^31 is 0: the jump
	} {
		a, err := New(new(oracle.Shelf), Config{Segments: segments, UnitBytes: 1, RegionBytes: device.Size(64 * segments)})
		require.NoError(t, err)
		a.counter = math.MaxInt32
		var got []int
		for range want {
			got = append(got, a.turn())
		}
		require.Equal(t, want, got, "%d segments", segments)
	}
}

// spoiled returns Check's error for a strategy after some calls and one broken thing.
func spoiled(t *testing.T, c Config, spoil func(*Allocator)) error {
	a, err := New(new(oracle.Shelf), c)
	require.NoError(t, err)
	for range 40 {
		b, err := a.Alloc(alloc.Request{Size: 1000})
		require.NoError(t, err)
		_, err = a.Alloc(alloc.Request{Size: 300})
		require.NoError(t, err)
		require.NoError(t, a.Free(b.Addr))
	}
	require.NoError(t, a.Check())
	spoil(a)
	return a.Check()
}

// TestCheckNamesWhatIsBroken spoils one thing at a time.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	for want, spoil := range map[string]func(*Allocator){
		"S1": func(a *Allocator) { a.all[0].class-- },
		"S2": func(a *Allocator) { a.all[len(a.all)-1].heads |= a.all[len(a.all)-1].free },
		"S3": func(a *Allocator) { a.live.Add(1, a.one()) },
		"S4": func(a *Allocator) { c := &a.all[len(a.all)-1]; c.free &= c.free - 1 },
		"S5": func(a *Allocator) { a.lines[0]-- },
		"S6": func(a *Allocator) { _ = a.grow() },
		"S7": func(a *Allocator) { a.bases[0]++ },
		"S8": func(a *Allocator) { a.front.Stats.Live++ },
		"S9": func(a *Allocator) { a.hole.units = 0 },
	} {
		err := spoiled(t, Config{Segments: 1, UnitBytes: 256, RegionBytes: 64 * 256}, spoil)
		require.ErrorContains(t, err, "slab: invariant "+want+" ", want)
	}
}

// one returns the record of some live block.
func (a *Allocator) one() (b front.LiveBlock) {
	for _, b = range a.live.Range {
		break
	}
	return b
}

func TestHostMemoryIsBounded(t *testing.T) {
	a, err := New(new(oracle.Shelf), Config{})
	require.NoError(t, err)
	chunks := a.chunks
	a.chunks = mostChunks + 1 // as if a slice had so many
	_, err = a.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	why, _ := a.LastRefusal()
	require.Equal(t, power.ReasonLimit, why.Reason)
	require.Zero(t, a.front.Stats.Regions, "the device was not asked")
	a.chunks = chunks
	_, err = a.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
}
