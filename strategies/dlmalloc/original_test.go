package dlmalloc_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/dlmalloc"
)

// TestBlocksLieAsInTheOriginal replays the calls of testdata/original/calls.txt. They were recorded
// from dlmalloc 2.8.6, compiled for 32 bits without changes (HAVE_MMAP=0, MALLOC_ALIGNMENT=8, one
// segment of 64 MiB from MORECORE). Its chunks have multiples of 8 bytes and at least 16, header
// included, so a chunk of n times 8 bytes there is one of n quanta here. A line is "a ID QUANTA
// OFFSET", with the offset from the first block in quanta, or "f ID". The first part has small
// requests only, the second log-uniform sizes up to 2^14 quanta, the third few sizes, many of them
// in one tree.
func TestBlocksLieAsInTheOriginal(t *testing.T) {
	calls, err := os.ReadFile("testdata/original/calls.txt")
	require.NoError(t, err)
	gpu, err := sim.New(sim.Config{})
	require.NoError(t, err)
	const quantum = 512
	a, err := dlmalloc.New(gpu, dlmalloc.Config{Quantum: quantum, MinChunk: 2, Limit: 4 * device.GiB})
	require.NoError(t, err)
	var first device.Addr
	blocks := map[int]device.Addr{}
	for i, line := range strings.Split(strings.TrimSpace(string(calls)), "\n") {
		var id, quanta, offset int
		if n, _ := fmt.Sscanf(line, "a %d %d %d", &id, &quanta, &offset); n == 3 {
			b, err := a.Alloc(alloc.Request{Size: device.Size(quanta) * quantum})
			require.NoError(t, err)
			if i == 0 {
				first = b.Addr
			}
			require.Equal(t, offset, int(b.Addr.Sub(first)/quantum), "line %d: %s", i+1, line)
			blocks[id] = b.Addr
			continue
		}
		_, err := fmt.Sscanf(line, "f %d", &id)
		require.NoError(t, err, line)
		require.NoError(t, a.Free(blocks[id]))
	}
	require.NoError(t, a.Check())
	require.Zero(t, a.Stats().Live)
}
