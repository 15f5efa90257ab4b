package rmm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/oracle"
)

// TestCheckNamesTheBrokenInvariant breaks one thing at a time.
func TestCheckNamesTheBrokenInvariant(t *testing.T) {
	pools := map[string]func(*pool){
		"N1 ":  func(p *pool) { p.slack++ },
		"N2 ":  func(p *pool) { p.live.Delete(p.rows[p.first(0)].addr, p.addrOf) },
		"N3 ":  func(p *pool) { p.bins[0].of[0].blocks-- },
		"N3 (": func(p *pool) { p.of[0].chunks.Take(p.of[0].chunks.Ceil(1)) },
		"N6 ":  func(p *pool) { p.front.Stats.Requested++ },
	}
	for want, spoil := range pools {
		a := filled(t, Config{
			Resource: Binning, InitialBytes: 64 * device.KiB, MinBinBytes: 256, MaxBinBytes: 256, BinBlocks: 4,
		})
		p := a.res.(*pool)
		spoil(p)
		require.ErrorContains(t, a.Check(), "rmm: invariant "+want, want)
	}
	arenas := map[string]func(*arena){
		"N1 ":  func(a *arena) { a.rows[a.first(0)].prev = 1 },
		"N4 ":  func(a *arena) { a.supers[1].size += quantum },
		"N4 (": func(a *arena) { a.of[1].chunks.Lower(0, 1) },
		"N5 ":  func(a *arena) { a.divide(uint32(len(a.supers)-1), leastSuperblock) },
	}
	for want, spoil := range arenas {
		a := filled(t, Config{Resource: Arena, InitialBytes: 8 * device.MiB})
		spoil(a.res.(*arena))
		require.ErrorContains(t, a.Check(), "rmm: invariant "+want, want)
	}
}

// filled returns a resource with live and free chunks.
func filled(t *testing.T, c Config) *Allocator {
	t.Helper()
	a, err := New(new(oracle.Shelf), c)
	require.NoError(t, err)
	var blocks []alloc.Block
	for range 3 {
		for _, n := range []device.Size{100, 1000} {
			b, err := a.Alloc(alloc.Request{Size: n})
			require.NoError(t, err)
			blocks = append(blocks, b)
		}
	}
	require.NoError(t, a.Free(blocks[3].Addr))
	require.NoError(t, a.Check())
	return a
}
