package compare_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/strategies"
)

// mixed returns a trace of random requests of 1 KiB to 32 MiB, with about 40 live blocks.
func mixed(rng *rand.Rand, events int) string {
	var b strings.Builder
	var live []int
	for i := range events {
		if k := len(live); k > 0 && rng.IntN(80) < k {
			at := rng.IntN(k)
			fmt.Fprintf(&b, "f %d\n", live[at])
			live = append(live[:at], live[at+1:]...)
			continue
		}
		fmt.Fprintf(&b, "a %d %d\n", i, 1<<(10+rng.IntN(15))+rng.IntN(4096))
		live = append(live, i)
	}
	return b.String()
}

// TestKnownOutcomesEqualReplays asks one trial for many capacities, and a new trial for each. Both
// give the same answers and count the same events, but the first replays fewer.
func TestKnownOutcomesEqualReplays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 28))
	p, err := replay.Prepare(t.Context(), read(t, mixed(rng, 500)))
	require.NoError(t, err)
	pool := compare.NewPool(1, 0)
	replayed, counted := 0, uint64(0)
	for _, name := range strategies.All().Names() {
		for _, charge := range []device.Size{256, 2 * device.MiB} {
			s := setups(t, name)[0]
			o := compare.Options{Device: replay.SimTarget(sim.Config{Charge: charge})}
			watched := o
			watched.Replayed = func(events int) { replayed += events }
			all := compare.NewTrial(pool, p, s, watched)
			before := uint64(0)
			for range 40 {
				n := p.LowerBound()*3/4 + device.Size(rng.Uint64N(uint64(p.LowerBound())))
				got, err := all.Completes(t.Context(), n)
				require.NoError(t, err)
				alone := compare.NewTrial(pool, p, s, o)
				want, err := alone.Completes(t.Context(), n)
				require.NoError(t, err)
				require.Equal(t, want, got, "%s on %d bytes", name, n)
				total := all.Replayed() + all.Recalled()
				require.Equal(t, alone.Replayed(), total-before, "%s on %d bytes", name, n)
				before = total
			}
			counted += before
		}
	}
	require.Less(t, uint64(replayed), counted*3/4)
}
