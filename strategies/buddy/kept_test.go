package buddy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/kit/regions"
	"github.com/vramyard/vramyard/strategies/buddy"
)

// TestKeptRegionsAreFew has one huge block live for a moment, after which any number of bytes may
// be kept, and then asks for ever larger blocks, none of which an earlier region serves.
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
	n, err := power.MetadataBytes(a)
	require.NoError(t, err)
	require.Less(t, n, device.MiB)
}

// TestWholeDeviceCostsLittle has blocks of all sizes come and go in one region of 1 TiB, whose sets
// of free blocks have room for 2^31 numbers.
func TestWholeDeviceCostsLittle(t *testing.T) {
	gpu, err := sim.New(sim.Config{Capacity: device.TiB})
	require.NoError(t, err)
	a, err := buddy.New(gpu, buddy.Config{Growth: regions.Whole, Trim: buddy.TrimOn, DirectBytes: 1 << 60})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	var live []device.Addr
	for range 20_000 {
		if len(live) > 0 && rng.IntN(5) < 2 {
			i := rng.IntN(len(live))
			require.NoError(t, a.Free(live[i]))
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		} else if b, err := a.Alloc(alloc.Request{Size: device.Size(math.Exp2(40 * rng.Float64()))}); err == nil {
			live = append(live, b.Addr)
		}
	}
	require.NoError(t, a.Check())
	n, err := power.MetadataBytes(a)
	require.NoError(t, err)
	require.Less(t, n, 8*device.MiB)
}
