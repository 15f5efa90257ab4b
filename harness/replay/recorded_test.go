package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// TestRecordedTracesReplayTheSame drives a strategy inside Recorded with random calls,
// legal and illegal, and replays the trace that comes out of it.
func TestRecordedTracesReplayTheSame(t *testing.T) {
	for seed := range uint64(20) {
		setup, err := strategies.All().Lookup("bfc:growth", json.RawMessage(`{"limit":"8MiB","timing":true}`))
		require.NoError(t, err)
		dev, err := sim.New(sim.Config{Capacity: 6 * device.MiB})
		require.NoError(t, err)
		inner, err := setup.New(dev)
		require.NoError(t, err)
		var text, placements bytes.Buffer
		recorder := trace.NewRecorder(&text)
		s, err := wrap.Recorded(inner, recorder.Record)
		require.NoError(t, err)
		want := play(t, s, rand.New(rand.NewPCG(seed, 0)))
		require.NoError(t, recorder.Close())

		events, err := trace.Read(&text, "recorded", trace.Options{})
		require.NoError(t, err)
		dev, err = sim.New(sim.Config{Capacity: 6 * device.MiB})
		require.NoError(t, err)
		_, err = replay.Run(events, setup, dev, replay.Options{Placements: &placements})
		require.NoError(t, err)
		require.Equal(t, strings.Join(want, "\n")+"\n", placements.String(), "seed %d", seed)
	}
}

// play makes random calls and returns the placement line of each request.
func play(t *testing.T, s alloc.Strategy, rng *rand.Rand) (lines []string) {
	t.Helper()
	var live []device.Addr
	for range 400 {
		switch k := rng.IntN(10); {
		case k < 5:
			b, err := s.Alloc(alloc.Request{Size: device.Size(rng.IntN(1 << 20)), Tag: rng.Uint64()})
			line := fmt.Sprintf("%d %d %d", len(lines), uint64(b.Addr-sim.Base), uint64(b.Size))
			if err != nil {
				line = fmt.Sprintf("%d OOM", len(lines))
			} else {
				live = append(live, b.Addr)
			}
			lines = append(lines, line)
		case k < 8 && len(live) > 0:
			i := rng.IntN(len(live))
			require.NoError(t, s.Free(live[i]))
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
		case k == 8:
			require.ErrorIs(t, s.Free(device.Addr(rng.Uint64N(1<<20))), alloc.ErrInvalidFree)
		default:
			require.NoError(t, power.SetFrontier(s, rng.Uint64N(300)))
		}
	}
	return lines
}
