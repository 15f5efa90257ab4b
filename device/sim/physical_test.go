package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
)

// TestPagesAreTheLowestFree compares frames with a slice that says who has each page.
func TestPagesAreTheLowestFree(t *testing.T) {
	const pages = 200
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		f := newFrames(Config{Charge: 256, Granularity: 4096})
		owner := make([]int32, pages) // the first piece of whoever has the page
		var held []int32
		taken := 0
		for range 400 {
			n := 1 + rng.IntN(30)
			if len(held) > 0 && (rng.IntN(2) == 0 || taken+n > pages) {
				i := rng.IntN(len(held))
				for p := range owner {
					if owner[p] == held[i] {
						owner[p] = 0
						taken--
					}
				}
				f.freeList(held[i])
				held = append(held[:i], held[i+1:]...)
			} else if taken+n <= pages {
				first := f.take(device.Size(n) * f.page)
				held = append(held, first)
				taken += n
				checkPieces(t, f, owner, first, n)
			}
			checkFree(t, f, owner)
		}
	}
}

// checkPieces enters a list of pieces of n pages, which must be the lowest free ones.
func checkPieces(t *testing.T, f *frames, owner []int32, first int32, n int) {
	t.Helper()
	lowest := 0
	for i := first; i != 0; i = f.pieces[i].next {
		for at := f.pieces[i].at; at < f.pieces[i].at.Add(f.pieces[i].size); at = at.Add(f.page) {
			for owner[lowest] != 0 {
				lowest++
			}
			require.Equal(t, device.Addr(lowest)*device.Addr(f.page), at)
			owner[lowest] = first
			n--
		}
	}
	require.Zero(t, n)
}

// checkFree compares the free pieces, which do not touch each other, with the pages without an
// owner.
func checkFree(t *testing.T, f *frames, owner []int32) {
	t.Helper()
	var pieces []device.Size
	run := device.Size(0)
	for _, o := range owner {
		if o == 0 {
			run += f.page
			continue
		}
		if run > 0 {
			pieces = append(pieces, run)
		}
		run = 0
	}
	require.Equal(t, device.Addr(len(owner))*device.Addr(f.page)-device.Addr(run), f.top)
	for e := range f.free.All {
		require.NotEmpty(t, pieces)
		require.Equal(t, pieces[0], e.Value)
		pieces = pieces[1:]
	}
	require.Empty(t, pieces)
}

func TestPhysicalMemoryIsInPieces(t *testing.T) {
	d, err := New(Config{Capacity: 10 * device.MiB, Memory: Placed})
	require.NoError(t, err)
	var held [5]device.Handle
	for i := range held {
		held[i], err = d.CreateHandle(2 * device.MiB)
		require.NoError(t, err)
	}
	require.NoError(t, d.ReleaseHandle(held[1]))
	require.NoError(t, d.ReleaseHandle(held[3]))
	require.Equal(t, Space{Used: 6 * device.MiB, Free: 4 * device.MiB, LargestFree: 2 * device.MiB, Pieces: 2},
		d.Physical())
	_, err = d.CreateHandle(4 * device.MiB)
	require.NoError(t, err, "pages need not lie together")
	require.Equal(t, Space{Used: 10 * device.MiB}, d.Physical())
}
