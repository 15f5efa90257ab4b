package remat

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestQuotientsAreRoundedOnce(t *testing.T) {
	r := workload.NewRand(1)
	check := func(n int64, x, y uint64) {
		d := new(big.Int).Mul(new(big.Int).SetUint64(x), new(big.Int).SetUint64(y))
		want, _ := new(big.Rat).SetFrac(big.NewInt(n), d).Float64()
		require.Equal(t, want, quotient(n, x, y), "%d / (%d * %d)", n, x, y)
	}
	for range 50_000 {
		n, x, y := r.Next()>>r.Below(64), r.Next()>>r.Below(64), r.Next()>>r.Below(64)
		check(int64(n>>1), x|1, y|1)
		check(-int64(n>>1), x|1, y|1)
	}
	for _, n := range []int64{0, 1, -1, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<63 - 1, 3 << 52} {
		for _, x := range []uint64{1, 3, 1<<53 - 1, 1<<53 + 1, 1 << 63, 1<<64 - 1} {
			check(n, x, 1)
			check(n, x, x)
			check(n, x, 1<<64-1)
		}
	}
}
