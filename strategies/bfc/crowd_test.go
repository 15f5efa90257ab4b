package bfc_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// BenchmarkCrowdedBin allocates and frees a block that none of the holes of its bin serves,
// which the search of the original passes one by one: 0.84 ms a pair with 1e5 of them. The
// holes have one size, or all that the bin has below that of the block.
func BenchmarkCrowdedBin(b *testing.B) {
	for _, holes := range []int{0, 1e5} {
		for _, sizes := range []int{1, 254} {
			b.Run(fmt.Sprintf("strategy=bfc/holes=%d/sizes=%d", holes, sizes), func(b *testing.B) {
				gpu, err := sim.New(sim.Config{Capacity: 64 * device.GiB})
				require.NoError(b, err)
				a, err := bfc.New(gpu, bfc.Config{Limit: 64 * device.GiB})
				require.NoError(b, err)
				at := make([]device.Addr, 0, holes)
				for i := range holes {
					at = append(at, grant(b, a, 64*device.KiB+device.Size(i%sizes)*256))
					grant(b, a, 256)
				}
				for _, hole := range at {
					require.NoError(b, a.Free(hole))
				}
				for b.Loop() {
					if a.Free(grant(b, a, 128*device.KiB-256)) != nil {
						b.Fatal("not freed")
					}
				}
				b.ReportMetric(float64(a.MetadataBytes())/float64(max(2*holes, 1)), "B/chunk")
			})
		}
	}
}

// grant allocates n bytes, which must be there.
func grant(b testing.TB, a *bfc.Allocator, n device.Size) device.Addr {
	block, err := a.Alloc(alloc.Request{Size: n})
	if err != nil {
		b.Fatal(err)
	}
	return block.Addr
}

// TestChunkTakesAtMost64Bytes measures the heap of an allocator with as many holes as blocks, where
// an index of holes costs most, and compares it with what the allocator says of itself.
func TestChunkTakesAtMost64Bytes(t *testing.T) {
	for _, live := range []int{50_000, 66_250, 100_000} {
		gpu, err := sim.New(sim.Config{Capacity: 64 * device.GiB})
		require.NoError(t, err)
		at := make([]device.Addr, live)
		before := heap()
		a, err := bfc.New(gpu, bfc.Config{Limit: 64 * device.GiB})
		require.NoError(t, err)
		for i := range at {
			at[i] = grant(t, a, 4096)
			grant(t, a, 4096)
		}
		for _, hole := range at {
			require.NoError(t, a.Free(hole))
		}
		took, chunks := float64(heap()-before), float64(2*live)
		require.Less(t, took/chunks, 64.0, "%d blocks", live)
		require.InEpsilon(t, took, float64(a.MetadataBytes()), 0.02)
		runtime.KeepAlive(a)
		runtime.KeepAlive(at)
	}
}

// heap returns the bytes of the Go heap that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
