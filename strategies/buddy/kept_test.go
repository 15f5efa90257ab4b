package buddy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/buddy"
)

// TestKeptRegionsAreFew has one huge block live for a moment, after which any number of bytes may be
// kept, and then asks for ever larger blocks, none of which an earlier region serves.
func TestKeptRegionsAreFew(t *testing.T) {
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	a, err := buddy.New(gpu, buddy.Config{})
	require.NoError(t, err)
	once := func(n device.Size) {
		b, err := a.Alloc(alloc.Request{Size: n})
		require.NoError(t, err)
		require.NoError(t, a.Free(b.Addr))
	}
	once(1 << 50)
	for i := range device.Size(5_000) {
		once(5*device.MiB + i*64*device.KiB)
	}
	require.NoError(t, a.Check())
	require.Less(t, a.Stats().Regions, 300)
	n, err := alloc.MetadataBytes(a)
	require.NoError(t, err)
	require.Less(t, n, device.MiB)
}
