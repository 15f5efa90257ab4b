package blaze

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/internal/oracle"
)

// TestCheckNamesWhatIsBroken spoils one thing at a time.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	for want, spoil := range map[string]func(*Allocator){
		"Z1": func(a *Allocator) { a.left -= 2 },
		"Z2": func(a *Allocator) { a.blocks[a.lists[10]].live = true },
		"Z3": func(a *Allocator) { a.some = 0 },
		"Z4": func(a *Allocator) { a.index.Delete(a.blocks[1].addr, a.addrOf) },
		"Z5": func(a *Allocator) { a.cuts[0].base++ },
		"Z6": func(a *Allocator) { a.front.Stats.Requested++ },
	} {
		a, err := New(new(oracle.Shelf), Config{RegionBytes: 64 * 256})
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
		require.ErrorContains(t, a.Check(), "slab: invariant "+want+" ", want)
	}
}
