package buddy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/buddy"
)

// BenchmarkPair frees a random live block and allocates another, with the numbers of live
// blocks and the sizes that the original was measured with.
func BenchmarkPair(b *testing.B) {
	sizes := map[string]func(*rand.Rand) device.Size{
		"16KiB": func(*rand.Rand) device.Size { return 16 * device.KiB },
		"16KiB-1MiB": func(rng *rand.Rand) device.Size {
			return device.Size(math.Exp2(14 + 6*rng.Float64()))
		},
	}
	for _, workload := range []string{"16KiB", "16KiB-1MiB"} {
		for _, live := range []int{1000, 10000, 100000} {
			b.Run(fmt.Sprintf("strategy=buddy:xdl/workload=%s/live=%d/threads=1", workload, live), func(b *testing.B) {
				benchmarkPair(b, live, sizes[workload])
			})
		}
	}
}

func benchmarkPair(b *testing.B, live int, size func(*rand.Rand) device.Size) {
	d, err := sim.New(sim.Config{})
	if err != nil {
		b.Fatal(err)
	}
	a, err := buddy.New(d, buddy.Config{Compat: buddy.CompatXDL})
	if err != nil {
		b.Fatal(err)
	}
	// The draws are made ahead: they cost more than the pair.
	rng := rand.New(rand.NewPCG(1, uint64(live)))
	blocks := make([]device.Addr, live)
	sizes, victims := make([]device.Size, 1<<16), make([]int, 1<<16)
	for i := range sizes {
		sizes[i], victims[i] = size(rng), rng.IntN(live)
	}
	pair := func(i, victim int) {
		if blocks[victim] != 0 {
			if err := a.Free(blocks[victim]); err != nil {
				b.Fatal(err)
			}
		}
		got, err := a.Alloc(alloc.Request{Size: sizes[i&(1<<16-1)]})
		if err != nil {
			b.Fatal(err)
		}
		blocks[victim] = got.Addr
	}
	for i := range blocks {
		pair(i, i)
	}
	for i := range 400000 {
		pair(i*7, victims[i&(1<<16-1)])
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		pair(i, victims[i&(1<<16-1)])
	}
	b.StopTimer()
	b.ReportMetric(float64(a.MetadataBytes())/float64(live), "metadata-B/block")
	b.ReportMetric(float64(a.Stats().Regions), "regions")
}
