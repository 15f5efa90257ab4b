package compare_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
)

// TestPoolBoundsMemory runs jobs that fit only one at a time, whatever the number of workers.
func TestPoolBoundsMemory(t *testing.T) {
	tr, err := trace.Read(strings.NewReader("a 1 1\na 2 1\nf 1\n"), "t", trace.Options{})
	require.NoError(t, err)
	p, err := replay.Prepare(t.Context(), tr)
	require.NoError(t, err)
	shared, each := p.Memory()
	require.EqualValues(t, 3*trace.ReplayEvent, shared)
	require.EqualValues(t, 2*trace.ReplayLive, each)
	for memory, most := range map[device.Size]int64{1: 1, shared + each: 1, shared + 2*each - 1: 1,
		shared + 3*each: 3, 0: 8} {
		var now, peak atomic.Int64
		done := atomic.Int64{}
		require.NoError(t, compare.NewPool(8, memory).Each(50, p, func(int) error {
			n := now.Add(1)
			for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
			}
			done.Add(1)
			now.Add(-1)
			return nil
		}))
		require.LessOrEqual(t, peak.Load(), most, "%v", memory)
		require.EqualValues(t, 50, done.Load())
	}
}
