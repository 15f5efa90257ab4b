package replay_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// runChanged replays a text trace through a strategy of the catalogue.
func runChanged(t *testing.T, text, name string, o replay.Options) (*replay.Result, error) {
	t.Helper()
	events, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Capacity: device.GiB})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup(name, nil)
	require.NoError(t, err)
	return replay.Run(events, setup, dev, o)
}

// TestConfEventsChangeSettings replays a free block of 100 MiB that may be split, or not.
func TestConfEventsChangeSettings(t *testing.T) {
	for conf, want := range map[string]device.Size{
		"": 100 * device.MiB, `conf ""`: 100 * device.MiB, "conf max_split_size_mb:20": 112 * device.MiB,
		"conf max_split_size_mb:20\nconf garbage_collection_threshold:0.5": 100 * device.MiB,
	} {
		res, err := runChanged(t, "a 1 100MiB\nf 1\n"+conf+"\na 2 12MiB\n", "caching", replay.Options{})
		require.NoError(t, err, conf)
		require.Equal(t, want, res.Peak.Reserved, conf)
		require.Zero(t, res.Ignored)
	}
	res, err := runChanged(t, "conf max_split_size_mb:20\na 1 5\n", "bfc", replay.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 1, res.Ignored, "a strategy without settings that change")
}

// TestWrongConfEventsEndTheReplay has settings that PyTorch rejects. An observer judges them
// itself.
func TestWrongConfEventsEndTheReplay(t *testing.T) {
	const text = "a 1 5\nconf max_split_size_mb:5\nf 1\n"
	_, err := runChanged(t, text, "caching", replay.Options{})
	require.EqualError(t, err, `caching on test: test.trace:2: conf "max_split_size_mb:5": alloc: invalid settings: `+
		"max_split_size_mb:5: want at least 20, the size of a large segment")
	var seen error
	_, err = runChanged(t, text, "caching", replay.Options{Observe: func(o replay.Observation) error {
		if o.Of != nil && o.Of.Kind == trace.Conf {
			seen = o.Err
		}
		return nil
	}})
	require.NoError(t, err)
	require.ErrorContains(t, seen, "want at least 20")
}

// TestSettingsOfAPhaseNeedTheirMarks replays settings that hold between two marks.
func TestSettingsOfAPhaseNeedTheirMarks(t *testing.T) {
	const text = "a 1 100MiB\nf 1\nmark load\na 2 12MiB\nmark loaded\na 3 12MiB\n"
	events, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	for conf, want := range map[string]string{
		"max_split_size_mb:20@load..loaded": "",
		"max_split_size_mb:20@lod..loaded": `caching on test: a setting changes at the mark "lod": did you mean "load"? ` +
			"the trace has no such mark",
		"max_split_size_mb:20@load..end of training": `caching on test: a setting changes at the mark "end of training": ` +
			"the trace has no such mark",
		"max_split_size_mb:20@loaded..load": `caching on test: a setting begins at the mark "loaded" (event 4 of the ` +
			`trace) and ends at the mark "load" (event 2), which is earlier: want the earlier mark before the dots`,
	} {
		dev, err := sim.New(sim.Config{Capacity: device.GiB})
		require.NoError(t, err)
		setup, err := strategies.All().Lookup("caching", json.RawMessage(`{"conf":"`+conf+`"}`))
		require.NoError(t, err)
		res, err := replay.Run(events, setup, dev, replay.Options{})
		if want != "" {
			require.EqualError(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 112*device.MiB, res.Peak.Reserved, "the second block is not split off, the third is")
	}
}
