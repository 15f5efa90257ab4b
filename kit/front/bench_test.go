package front_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
)

// BenchmarkPair takes a random block and adds another.
func BenchmarkPair(b *testing.B) {
	for _, live := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			var l front.Ledger
			rng := rand.New(rand.NewPCG(1, 0))
			blocks := make([]device.Addr, live)
			for i := range blocks {
				blocks[i] = 0x7f0000000000 + device.Addr(i)<<12
				l.Add(blocks[i], front.LiveBlock{})
			}
			draws := make([]int, 1<<16)
			for i := range draws {
				draws[i] = rng.IntN(live)
			}
			for i := 0; b.Loop(); i++ {
				k := draws[i&(1<<16-1)]
				got, _ := l.Take(blocks[k])
				l.Add(blocks[k], got)
			}
			b.ReportMetric(float64(l.Bytes())/float64(live), "B/block")
		})
	}
}
