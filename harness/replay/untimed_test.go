package replay_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// walkCounter is a strategy without the power power.Holes. It counts its walks, and those that a
// running clock times.
type walkCounter struct {
	alloc.Strategy
	runs         func() bool // the clock
	walks, timed int
}

func (w *walkCounter) Walk(yield func(alloc.Chunk) bool) {
	if w.walks++; w.runs != nil && w.runs() {
		w.timed++
	}
	w.Strategy.Walk(yield)
}

// TestWalksAreNotTimed replays with every figure and report: the harness walks after nearly every
// event, and at the first refusal, always with the clock stopped.
func TestWalksAreNotTimed(t *testing.T) {
	events := strings.Repeat("a 1 1MiB\na 2 3MiB\nf 1\na 3 2MiB\nf 2\nf 3\n", 20) + "a 9 1TiB\n"
	tr, err := trace.Read(strings.NewReader(events), "walks.trace", trace.Options{})
	require.NoError(t, err)
	inner, err := strategies.All().Lookup("tlsf", nil)
	require.NoError(t, err)
	for _, wrap := range []func(alloc.Strategy) (alloc.Strategy, error){
		func(s alloc.Strategy) (alloc.Strategy, error) { return s, nil },
		wrap.Locked, // whose method set has every power
	} {
		var w *walkCounter
		setup, err := setting.Catalogue{
			setting.SpecOf("walks", "", func(src device.Source, _ struct{}) (alloc.Strategy, error) {
				s, err := inner.New(src)
				if err != nil {
					return nil, err
				}
				w = &walkCounter{Strategy: s}
				return wrap(w)
			}, setting.Preset{})}.Lookup("walks", nil)
		require.NoError(t, err)
		p, err := replay.Prepare(t.Context(), tr)
		require.NoError(t, err)
		dev, err := sim.New(sim.Config{Capacity: device.GiB})
		require.NoError(t, err)
		res, err := p.RunClocked(setup, dev, replay.Options{Figures: true, Report: true}, func(runs func() bool) {
			w.runs = runs
		})
		require.NoError(t, err)
		require.Greater(t, w.walks, 60)
		require.Zero(t, w.timed)
		require.EqualValues(t, 1, res.OOMs)
	}
}
