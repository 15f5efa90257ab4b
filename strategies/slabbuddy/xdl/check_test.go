package xdl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/oracle"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// TestCheckNamesWhatIsBroken spoils one thing at a time. R5 is what
// the tests of the parts spoil.
func TestCheckNamesWhatIsBroken(t *testing.T) {
	for want, spoil := range map[string]func(*Allocator){
		"R1": func(a *Allocator) { a.cfg.BlockBytes *= 8 },
		"R2": func(a *Allocator) { _, _ = a.regions.Reserve(1, 0, int32(slabbuddy.OwnerSlab)) },
		"R3": func(a *Allocator) { a.direct.Add(1, front.LiveBlock{}) },
		"R6": func(a *Allocator) { a.front.Stats.Requested++ },
	} {
		a, err := New(new(oracle.Shelf), Config{})
		require.NoError(t, err)
		for _, size := range []device.Size{1, 20000, device.GiB} {
			_, err := a.Alloc(alloc.Request{Size: size})
			require.NoError(t, err)
		}
		require.NoError(t, a.Check())
		spoil(a)
		require.ErrorContains(t, a.Check(), "slabbuddy: invariant "+want+" ")
	}
}
