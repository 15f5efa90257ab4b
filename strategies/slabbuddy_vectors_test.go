package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace/vectors"
	"github.com/vramyard/vramyard/strategies"
)

// TestSharedPoolHoldsLittleWhereSegmentsStarved replays the vectors on which X-DeepLearning's
// allocators hold several times what is live, the worst 32 times: requests in turn to 32
// segments that share nothing. One pool of regions must hold hardly more than what is live.
func TestSharedPoolHoldsLittleWhereSegmentsStarved(t *testing.T) {
	all, err := vectors.XDL()
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("slabbuddy", nil)
	require.NoError(t, err)
	starved := 0
	for _, v := range all {
		if v.Name != "E_starve_20k" && v.Name != "E_rr_imbalance_5k" {
			continue
		}
		starved++
		t.Run(v.ID(), func(t *testing.T) {
			events, err := v.Trace()
			require.NoError(t, err)
			dev, err := sim.New(sim.Config{})
			require.NoError(t, err)
			r, err := replay.Run(events, setup, dev, replay.Options{})
			require.NoError(t, err)
			held := float64(r.Peak.Reserved) / float64(r.Peak.Requested)
			t.Logf("peak live %v, peak held %v: %.3f", r.Peak.Requested, r.Peak.Reserved, held)
			assert.LessOrEqual(t, held, 1.1)
		})
	}
	require.Equal(t, 3, starved, "vectors are missing")
}
