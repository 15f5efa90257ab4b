package bestfit_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// placer returns a placer with one region of n bytes, and the address at which it begins.
func placer(t *testing.T, n device.Size) (bestfit.Placer, device.Addr) {
	t.Helper()
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	p, err := bestfit.NewPlacer(gpu, bestfit.Config{Limit: n})
	require.NoError(t, err)
	b, err := p.Alloc(alloc.Request{Size: 1})
	require.NoError(t, err)
	require.NoError(t, p.FreeRef(b))
	return p, b.Addr
}

// TestPlaceCutsAChunk places blocks at both ends and in the middle of a free chunk.
func TestPlaceCutsAChunk(t *testing.T) {
	p, start := placer(t, 64*device.KiB)
	p.Track()
	place := func(at, n device.Size) (alloc.Block, bool) {
		b, ok := p.Place(&alloc.Request{Size: n - 1}, start.Add(at), n)
		require.NoError(t, p.Check())
		return b, ok
	}
	for _, c := range []struct {
		at, n device.Size
		free  bool
	}{
		{8192, 4096, true},
		{8192, 256, false},       // live
		{8192 - 256, 512, false}, // overlaps the block behind it
		{12288 - 256, 512, false},
		{8192 - 256, 256, true},
		{0, 256, true},
		{64*1024 - 256, 256, true},
		{64*1024 - 512, 512, false},
		{64 * 1024, 256, false}, // beyond the region
		{128, 256, false},       // not at the quantum
		{12288, 51*1024 + 768, true},
	} {
		b, ok := place(c.at, c.n)
		require.Equal(t, c.free, ok, "%d bytes at %d", uint64(c.n), uint64(c.at))
		if ok {
			require.Equal(t, start.Add(c.at), b.Addr)
			require.Equal(t, c.n, b.Size)
		}
	}
	var gaps []device.Size
	for at, n := range p.Gaps {
		gaps = append(gaps, at.Sub(start), n)
	}
	require.Equal(t, []device.Size{256, 8192 - 512}, gaps)
	ref, err := p.Drop(start.Add(8192))
	require.NoError(t, err)
	require.NotZero(t, ref)
	_, err = p.Drop(start.Add(8192))
	require.ErrorIs(t, err, alloc.ErrInvalidFree)
	require.Equal(t, 4, p.Stats().Live)
	require.NoError(t, p.Check())
}

// TestPlaceHonoursTheAlignment refuses a place that is free and not aligned.
func TestPlaceHonoursTheAlignment(t *testing.T) {
	p, start := placer(t, 64*device.KiB)
	p.Track()
	_, ok := p.Place(&alloc.Request{Size: 256, Align: 4096}, start.Add(256), 256)
	require.False(t, ok)
	_, ok = p.Place(&alloc.Request{Size: 256, Align: 4096}, start.Add(4096), 256)
	require.True(t, ok)
}

// TestGapsFollowEveryChange compares the free chunks by address with the walk, while tracking
// begins and ends.
func TestGapsFollowEveryChange(t *testing.T) {
	p, start := placer(t, 64*device.KiB)
	random := rand.New(rand.NewPCG(1, 2))
	var blocks []alloc.Block
	placed := 0
	for i := range 3000 {
		if i%100 == 20 {
			p.Untrack()
		}
		if i%100 == 40 {
			p.Track()
			p.Track() // does nothing
		}
		tracked := i >= 40 && (i%100 < 20 || i%100 >= 40)
		switch n := device.Size(1+random.IntN(32)) * 256; {
		case random.IntN(2) == 0 && len(blocks) > 0:
			k := random.IntN(len(blocks))
			_, err := p.Drop(blocks[k].Addr)
			require.NoError(t, err)
			blocks[k] = blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
		case tracked && random.IntN(2) == 0:
			if b, ok := p.Place(&alloc.Request{Size: n}, start.Add(device.Size(random.IntN(256))*256), n); ok {
				blocks = append(blocks, b)
				placed++
			}
		default:
			if b, err := p.Alloc(alloc.Request{Size: n}); err == nil {
				blocks = append(blocks, b)
			}
		}
		require.NoError(t, p.Check())
		if !tracked {
			continue
		}
		var walked, gaps []alloc.Chunk
		for c := range p.Walk {
			if c.State == alloc.Free {
				walked = append(walked, alloc.Chunk{Addr: c.Addr, Size: c.Size})
			}
		}
		for at, n := range p.Gaps {
			gaps = append(gaps, alloc.Chunk{Addr: at, Size: n})
		}
		require.Equal(t, walked, gaps)
	}
	require.Greater(t, placed, 100)
}
