package xdl

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/oracle"
)

// slowLongest is longestIn by trying every aligned run.
func slowLongest(free uint64) (n byte) {
	for order := 0; order <= wordOrder; order++ {
		for b := 0; b < 64; b += 1 << order {
			if m := run(order) << b; free&m == m {
				n = byte(order + 1)
			}
		}
	}
	return n
}

func TestLongestIn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	words := []uint64{0, 1, 2, 3, 6, 0xf0, 0xff00, ^uint64(0), ^uint64(0) >> 1, 1 << 63, 0xffffffff, 0xffffffff << 32,
		0xffffffff << 16}
	for range 400 {
		words = append(words, rng.Uint64()|rng.Uint64()|rng.Uint64(), ^(uint64(1) << rng.IntN(64)), rng.Uint64()&rng.Uint64())
	}
	for _, w := range words {
		require.Equal(t, slowLongest(w), longestIn(w), "%#x", w)
		for order := range int(longestIn(w)) {
			for b := range 64 {
				m := run(order) << b
				require.Equal(t, b%(1<<order) == 0 && w&m == m, starts(w, order)>>b&1 != 0, "%#x order %d bit %d", w, order, b)
			}
		}
	}
}

// TestCheckNamesWhatIsBroken spoils one thing at a time.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	for want, spoil := range map[string]func(*Allocator){
		"U1": func(a *Allocator) { a.live.Take(a.bases[0]) },
		"U3": func(a *Allocator) { a.trees[1].longest[4]-- },
		"U4": func(a *Allocator) { a.trees[0].longest[1] = 0 },
		"U5": func(a *Allocator) { a.trees[0].words[0].free &^= 1 << 63 },
		"U6": func(a *Allocator) { a.roots[0]++ },
		"U7": func(a *Allocator) { a.bases[0], a.bases[1] = a.bases[1], a.bases[0] },
		"U8": func(a *Allocator) { a.front.Stats.Requested++ },
		"U9": func(a *Allocator) { a.trees[0].words[0].free |= 1 },
	} {
		t.Run(want, func(t *testing.T) {
			a, err := New(new(oracle.Shelf), Config{RegionBytes: 256 << 10, BlockBytes: 256})
			require.NoError(t, err)
			first, err := a.Alloc(alloc.Request{Size: 300})
			require.NoError(t, err)
			_, err = a.Alloc(alloc.Request{Size: 256 << 10})
			require.NoError(t, err)
			require.NoError(t, a.Check())
			if want == "U4" {
				require.NoError(t, a.Free(first.Addr))
			}
			spoil(a)
			if want == "U4" {
				a.trees[0].longest[1], a.roots[0] = 1, 1
			}
			require.ErrorContains(t, a.Check(), "buddy: invariant "+want+" ")
		})
	}
}

func TestPlacesHave64Bits(t *testing.T) {
	a, err := New(new(oracle.Shelf), Config{RegionBytes: 64 * device.GiB, BlockBytes: device.GiB})
	require.NoError(t, err)
	var last alloc.Block
	for range 70 {
		last, err = a.Alloc(alloc.Request{Size: device.GiB})
		require.NoError(t, err)
	}
	require.Equal(t, a.bases[1].Add(5*device.GiB), last.Addr)
	require.NoError(t, a.Check())
	require.NoError(t, a.Free(last.Addr))
	require.NoError(t, a.Check())
}

func TestHostMemoryIsBounded(t *testing.T) {
	a, err := New(new(oracle.Shelf), Config{})
	require.NoError(t, err)
	a.trees = make([]tree, mostBlocks>>a.top) // as if there were that many regions
	_, err = a.Alloc(alloc.Request{Size: 1})
	require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	why, _ := a.LastRefusal()
	require.Equal(t, power.ReasonLimit, why.Reason)
	require.Zero(t, a.front.Stats.ReserveFailures, "the device was not asked")
	a.trees = nil
	_, err = a.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
}
