package slabbuddy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/strategies/slabbuddy"
)

// BenchmarkPair frees a random live block and allocates another, with the numbers of live
// blocks and the sizes that the original was measured with.
func BenchmarkPair(b *testing.B) {
	for _, c := range []struct {
		workload string
		size     func(*rand.Rand) device.Size
	}{
		{"1B-16KiB", func(rng *rand.Rand) device.Size { return 1 + device.Size(rng.IntN(16383)) }},
		{"256B-1MiB", func(rng *rand.Rand) device.Size { return device.Size(math.Exp2(8 + 12*rng.Float64())) }},
	} {
		for _, live := range []int{1000, 10000, 100000} {
			b.Run(fmt.Sprintf("strategy=slabbuddy:xdl/workload=%s/live=%d/threads=1", c.workload, live), func(b *testing.B) {
				benchmarkPair(b, live, c.size)
			})
		}
	}
}

func benchmarkPair(b *testing.B, live int, size func(*rand.Rand) device.Size) {
	d, err := sim.New(sim.Config{})
	if err != nil {
		b.Fatal(err)
	}
	a, err := slabbuddy.New(d, slabbuddy.Config{Compat: slabbuddy.CompatXDL})
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
	meta, err := alloc.MetadataBytes(a)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(meta)/float64(live), "metadata-B/block")
	b.ReportMetric(float64(a.Stats().Regions), "regions")
}
