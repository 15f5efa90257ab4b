package page_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/page"
)

// random returns n blocks with short and long lifetimes of a trace, in the order of their deaths.
func random(seed uint64, n, events int) []page.Rect {
	rng := rand.New(rand.NewPCG(seed, 3))
	list := make([]page.Rect, n)
	for i := range list {
		born := uint32(rng.IntN(events))
		r := page.Rect{
			Addr: device.Addr(0x7f0000000000 + 256*rng.Uint64N(1<<20)), Size: device.Size(1 + rng.Uint64N(1<<(2+rng.IntN(30)))),
			ID: uint64(i), Born: born, Reclaimed: page.Never, Tag: uint32(rng.IntN(9)), Class: int32(rng.IntN(5) - 1),
			Stream: uint16(rng.IntN(3)),
		}
		r.Requested = r.Size - device.Size(rng.Uint64N(uint64(r.Size)))
		if rng.IntN(50) > 0 {
			r.Reclaimed = min(born+1+uint32(rng.IntN(1<<rng.IntN(16))), uint32(events))
		}
		r.Freed = r.Reclaimed - min(r.Reclaimed-born-1, uint32(rng.IntN(3)))
		list[i] = r
	}
	slices.SortStableFunc(list, func(a, b page.Rect) int { return cmp.Compare(a.Reclaimed, b.Reclaimed) })
	return list
}

func blocksWritten(t testing.TB, list []page.Rect, events int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := page.NewWriter(&b, events)
	for i := range list {
		w.Add(&list[i])
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// weight returns the byte-events that a block covers of a window; 0 if it does not touch it.
func weight(r *page.Rect, w page.BlockWindow) float64 {
	from, to := max(int(r.Born), w.From), min(int(r.Reclaimed), w.To)
	if from >= to || r.Addr >= w.High || r.Addr.Add(r.Size) <= w.Low {
		return 0
	}
	return float64(r.Size) * float64(to-from)
}

// TestFindsTheLargestOfAWindow compares windows of every width with a scan of all blocks.
func TestFindsTheLargestOfAWindow(t *testing.T) {
	const events = 40_000
	for seed := range uint64(3) {
		list := random(seed, 20_000, events)
		text := blocksWritten(t, list, events)
		f, err := page.OpenBlocks(bytes.NewReader(text), int64(len(text)))
		require.NoError(t, err)
		require.EqualValues(t, len(list), f.Blocks())
		rng := rand.New(rand.NewPCG(seed, 4))
		for range 60 {
			w := page.BlockWindow{From: rng.IntN(events), High: math.MaxUint64, Most: 1 + rng.IntN(1<<rng.IntN(16))}
			w.To = w.From - 1 + rng.IntN(1<<rng.IntN(17))
			if rng.IntN(2) == 0 {
				w.Low = device.Addr(0x7f0000000000 + 256*rng.Uint64N(1<<20))
				w.High = w.Low.Add(device.Size(rng.Uint64N(1 << 29)))
			}
			requireFound(t, f, list, w)
		}
	}
}

// requireFound compares the blocks found in a window with a scan of all blocks.
func requireFound(t *testing.T, f *page.BlockFile, list []page.Rect, w page.BlockWindow) {
	t.Helper()
	got, err := f.Find(context.Background(), w)
	require.NoError(t, err)
	in := w
	in.To = min(w.To, 40_000)
	want := []float64{}
	for i := range list {
		if x := weight(&list[i], in); x > 0 {
			want = append(want, x)
		}
	}
	slices.Sort(want)
	slices.Reverse(want)
	what := fmt.Sprintf("%+v", w)
	require.False(t, got.Stopped, what)
	if got.Complete {
		require.Len(t, got.Rects, len(want), what)
	} else {
		require.Len(t, got.Rects, min(len(want), w.Most), what)
	}
	have := make([]float64, len(got.Rects))
	byID := map[uint64]*page.Rect{}
	for i := range list {
		byID[list[i].ID] = &list[i]
	}
	for i := range got.Rects {
		require.Equal(t, *byID[got.Rects[i].ID], got.Rects[i], what)
		have[i] = weight(&got.Rects[i], in)
	}
	require.True(t, slices.IsSortedFunc(got.Rects, func(a, b page.Rect) int { return cmp.Compare(a.Born, b.Born) }), what)
	slices.Sort(have)
	slices.Reverse(have)
	require.Equal(t, want[:len(have)], have, what)
}

// TestAFileThatIsNotWholeIsRefused cuts a file everywhere and changes its directory.
func TestAFileThatIsNotWholeIsRefused(t *testing.T) {
	text := blocksWritten(t, random(1, 50, 1000), 1000)
	for n := range text {
		_, err := page.OpenBlocks(bytes.NewReader(text[:n]), int64(n))
		require.Error(t, err, n)
	}
	for i := len(text) - 60; i < len(text); i++ {
		bad := slices.Clone(text)
		bad[i] ^= 4
		_, err := page.OpenBlocks(bytes.NewReader(bad), int64(len(bad)))
		require.Error(t, err, i)
	}
}

// TestFindEndsWithItsContext asks with one that is over.
func TestFindEndsWithItsContext(t *testing.T) {
	text := blocksWritten(t, random(1, 5000, 1000), 1000)
	f, err := page.OpenBlocks(bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err = f.Find(ctx, page.BlockWindow{To: 1000, High: math.MaxUint64, Most: 10})
	require.ErrorIs(t, err, context.Canceled)
}

// BenchmarkFind looks for windows among a million blocks, from all of them to a thousandth of the
// trace.
func BenchmarkFind(b *testing.B) {
	const events = 2_000_000
	text := blocksWritten(b, random(1, 1_000_000, events), events)
	f, err := page.OpenBlocks(bytes.NewReader(text), int64(len(text)))
	require.NoError(b, err)
	for _, part := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("window=1:%d", part), func(b *testing.B) {
			for b.Loop() {
				w := page.BlockWindow{From: events / 3, To: events/3 + events/part, High: math.MaxUint64, Most: 1_000_000}
				_, err := f.Find(context.Background(), w)
				require.NoError(b, err)
			}
		})
	}
}
