package whatif_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// TestReducedSettingsPlaceAlike replays recorded traces through the settings of the quick grid and
// what they reduce to, on a device that nearly runs out, and compares every placement and every
// call.
func TestReducedSettingsPlaceAlike(t *testing.T) {
	pairs := 0
	for _, name := range []string{"cpu_resnet50_train", "cpu_gpt2_train_varlen", "meta_resnet50_b256"} {
		tr, err := workload.OpenRecording(name)
		require.NoError(t, err)
		w, err := whatif.Survey(tr)
		require.NoError(t, err)
		p, err := replay.Prepare(t.Context(), w)
		require.NoError(t, err)
		capacity := device.AlignUp(p.LowerBound()+p.LowerBound()/16, 2*device.MiB)
		for _, s := range quick(t) {
			short := s.Reduced(w.Demand)
			if encoded(t, short) == encoded(t, s) {
				continue
			}
			pairs++
			require.Equal(t, told(t, p, s, capacity), told(t, p, short, capacity), "%s: %s and %s", name, encoded(t, s),
				encoded(t, short))
		}
	}
	require.Greater(t, pairs, 10)
}

// encoded returns a configuration in JSON.
func encoded(t testing.TB, s setting.Setup) string {
	t.Helper()
	text, err := json.Marshal(s.Config)
	require.NoError(t, err)
	return string(text)
}

// told returns a hash of all placements, and what the device was asked.
func told(t *testing.T, p *replay.Prepared, s setting.Setup, capacity device.Size) string {
	t.Helper()
	dev, err := sim.New(sim.Config{Capacity: capacity})
	require.NoError(t, err)
	sum := sha256.New()
	res, err := p.Run(s.ForCapacity(capacity), dev, replay.Options{Placements: sum})
	require.NoError(t, err)
	return fmt.Sprintf("%x %v %d %d", sum.Sum(nil), res.Calls, res.OOMs, res.Peak.Reserved)
}
