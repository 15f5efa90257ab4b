package postmortem_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/strategies"
)

// TestExportedSnapshotsGiveTheSameExplanation explains the first refusal of a replay, writes the
// replay up to there as a snapshot, and explains the refusal that the snapshot has.
func TestExportedSnapshotsGiveTheSameExplanation(t *testing.T) {
	t.Logf("seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 13))
	compared := 0
	for k := range 24 {
		config := []string{`{}`, `{"conf":"max_split_size_mb:21"}`, `{"conf":"expandable_segments:True"}`}[k%3]
		setup, err := strategies.All().Lookup("caching", json.RawMessage(config))
		require.NoError(t, err)
		tr := churn(t, r, 1+k%2)
		capacity := device.Size(64+16*(k%5)) * mib
		p, err := replay.Prepare(t.Context(), tr)
		require.NoError(t, err)
		v, err := postmortem.Replay(p, setup, postmortem.Options{Event: postmortem.FirstOOM, Device: onDevices(capacity)})
		require.NoError(t, err)
		if v.Outcome != postmortem.Refused {
			continue
		}
		dev, err := sim.New(sim.Config{Capacity: capacity})
		require.NoError(t, err)
		recording, err := export.Replay(tr, setup, dev, export.Options{StopAtOOM: true})
		require.NoError(t, err)
		s, err := recording.Snapshot()
		require.NoError(t, err)
		rec := recordingsOf(t, s)[0]
		entries := rec.Refusals()
		require.Len(t, entries, 1)
		got, err := rec.AtEntry(entries[0])
		require.NoError(t, err)
		want := v.Report
		require.Equal(t, want.Verdict, got.Verdict)
		require.Equal(t, want.Block, got.Block)
		require.Equal(t, want.Segment, got.Segment)
		require.Equal(t, want.Device, got.Device)
		require.Equal(t, want.Live, got.Live)
		require.Equal(t, want.Wanted, got.Wanted)
		require.Equal(t, want.Free, got.Free)
		require.Equal(t, want.Usable, got.Usable)
		require.Equal(t, want.Pending, got.Pending)
		require.Equal(t, want.Streams, got.Streams)
		require.ElementsMatch(t, prices(want.Plans), prices(got.Plans)) // a replay puts those that hold first
		compared++
	}
	t.Logf("%d refusals", compared)
	require.Greater(t, compared, 15)
}

// prices returns what plans cost.
func prices(plans []postmortem.Plan) (list []price) {
	for _, p := range plans {
		list = append(list, price{p.Count, p.Bytes, p.Waits})
	}
	return list
}
