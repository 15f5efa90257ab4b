package bestfit_test

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bestfit"
)

// TestCompactKeepsContents copies what is in blocks as they are told to move, in memory of this
// program, and finds it where they are then. Afterwards all that is free is one piece.
func TestCompactKeepsContents(t *testing.T) {
	const room = 1 << 20
	rng := rand.New(rand.NewSource(1))
	for range 20 {
		dev, err := sim.New(sim.Config{Capacity: room})
		require.NoError(t, err)
		a, err := bestfit.New(dev, bestfit.Config{Limit: room})
		require.NoError(t, err)
		memory, live := make([]byte, room), map[uint64]alloc.Block{}
		part := func(b alloc.Block) []byte { return memory[b.Addr-sim.Base:][:b.Size] }
		for tag := uint64(1); tag <= 200; tag++ {
			r := alloc.Request{Size: 1 + device.Size(rng.Intn(20000)), Tag: tag, Stream: device.Stream(tag % 3)}
			if b, err := a.Alloc(r); err == nil {
				live[tag] = b
				copy(part(b), bytes.Repeat([]byte{byte(tag)}, int(b.Size)))
			}
			if victim := uint64(rng.Intn(int(tag))) + 1; live[victim].Size != 0 && tag%2 == 0 {
				require.NoError(t, a.Free(live[victim].Addr))
				delete(live, victim)
			}
		}
		tagOf := map[device.Addr]uint64{}
		for tag, b := range live {
			tagOf[b.Addr] = tag
		}
		n, err := power.Compact(a, func(alloc.Chunk) bool { return true }, func(from, to alloc.Block) {
			copy(part(to), part(from)) // which is memmove
			live[tagOf[from.Addr]] = to
		})
		require.NoError(t, err)
		require.NotZero(t, n)
		require.NoError(t, a.Check())
		for tag, b := range live {
			require.Equal(t, bytes.Repeat([]byte{byte(tag)}, int(b.Size)), part(b), "block %d", tag)
		}
		require.Equal(t, a.Stats().Reserved-a.Stats().Allocated, a.LargestFree())
		for _, b := range live {
			require.NoError(t, a.Free(b.Addr))
		}
		require.NoError(t, a.Close())
		_, err = power.Compact(a, nil, nil)
		require.ErrorIs(t, err, alloc.ErrClosed)
	}
}
