package replay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// prepared prepares a text trace.
func prepared(t *testing.T, text string) *replay.Prepared {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	return replay.Prepare(tr)
}

func TestPreparedServesManyReplaysAtOnce(t *testing.T) {
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "a %d %d stream=%d tag=t%d\n", i, 256*(1+i*7919%97), i%3, i%5)
		if i >= 100 {
			fmt.Fprintf(&text, "f %d\n", i-100)
		}
	}
	p := prepared(t, text.String())
	require.Len(t, p.Trace().Events, 5900)
	require.Equal(t, p.Trace().LowerBound(), p.LowerBound())
	setup, err := strategies.All().Lookup("bfc:growth", nil)
	require.NoError(t, err)
	results := make([]string, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			dev, err := sim.New(sim.Config{Capacity: 2 * device.MiB})
			if err != nil {
				return
			}
			r, err := p.Run(setup, dev, replay.Options{Figures: true})
			if err != nil {
				results[i] = err.Error()
				return
			}
			r.NsPerOp = 0
			text, _ := json.Marshal(r)
			results[i] = string(text)
		})
	}
	wg.Wait()
	for _, r := range results {
		require.Contains(t, r, `"alloc_count":3000`)
		require.Equal(t, results[0], r)
	}
}

// TestRareWishesGoTheLongWay compares a request of every kind with what reaches the strategy.
func TestRareWishesGoTheLongWay(t *testing.T) {
	setup, err := strategies.All().Lookup("tlsf", json.RawMessage(`{"limit":"1MiB"}`))
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	var placements strings.Builder

	_, err = prepared(t, "live 3 256\na 1 256\na 2 256 align=4096\na 4 256 stream=8589934592\nf 1\na 5 256 tag=x\n").
		Run(setup, dev, replay.Options{Placements: &placements})
	require.NoError(t, err)
	require.Equal(t, "3 0 256\n1 256 256\n2 4096 256\n4 512 256\n5 256 256\n", placements.String())
}

// TestABlockThatCouldNotBeFreed replays on a device that refuses to take a region back: the
// block stays live, whatever becomes of its place.
func TestABlockThatCouldNotBeFreed(t *testing.T) {
	setup, err := strategies.All().Lookup("slab", nil)
	require.NoError(t, err)
	inner, err := sim.New(sim.Config{})
	require.NoError(t, err)
	dev, err := device.NewFaults(inner, device.FaultPlan{Nth: 3}) // two reservations come before
	require.NoError(t, err)
	r, err := prepared(t, "a 1 1MiB\na 2 2MiB\nf 1\na 3 3MiB\nf 3\na 4 1MiB\n").Run(setup, dev, replay.Options{})
	require.NoError(t, err)
	require.Equal(t, uint64(1), r.FailedFrees)
	require.Equal(t, 4*device.MiB, r.Now.Requested)
}

func TestSeriesOfAnyLength(t *testing.T) {
	setup, err := strategies.All().Lookup("bfc", json.RawMessage(`{"limit":"1MiB"}`))
	require.NoError(t, err)
	for _, c := range []struct{ events, stride int }{
		{0, 1}, {1, 1}, {2047, 1}, {2048, 2}, {4095, 2}, {4096, 4}, {6001, 4}, {8192, 8},
	} {
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		r, err := prepared(t, strings.Repeat("mark x\n", c.events)).Run(setup, dev, replay.Options{Figures: true})
		require.NoError(t, err)
		require.Equal(t, c.stride, r.Series.Stride, c.events)
		require.Len(t, r.Series.Points, (c.events+c.stride-1)/c.stride)
		for i, p := range r.Series.Points {
			require.Equal(t, min((i+1)*c.stride, c.events)-1, p.Event)
		}
	}
}

func TestSeriesEndsWhereTheReplayStops(t *testing.T) {
	r, err := run(t, "a 1 1MiB\na 2 1MiB\nf 1\n", "bfc", `{"limit":"1MiB"}`, sim.Config{},
		replay.Options{Figures: true, StopAtOOM: true})
	require.NoError(t, err)
	require.True(t, r.Stopped)
	require.Equal(t, []replay.Point{
		{Event: 0, Requested: device.MiB, Allocated: device.MiB, Reserved: device.MiB},
		{Event: 1, Requested: device.MiB, Allocated: device.MiB, Reserved: device.MiB, OOMs: 1},
	}, r.Series.Points)
}
