package replay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// pooled is a strategy that notes what becomes of private pools, and has none of pool 9.
type pooled struct {
	alloc.Strategy
	calls []string
}

func (p *pooled) note(verb string, id alloc.PoolID, s device.Stream) error {
	if id == 9 {
		return alloc.ErrInvalidPool
	}
	p.calls = append(p.calls, fmt.Sprintf("%s %d %d", verb, id, int64(s)))
	return nil
}

func (p *pooled) BeginPool(id alloc.PoolID, s device.Stream) error { return p.note("begin", id, s) }
func (p *pooled) EndPool(id alloc.PoolID) error                    { return p.note("end", id, 0) }
func (p *pooled) ReleasePool(id alloc.PoolID) error                { return p.note("release", id, 0) }

// runPooled replays a text trace through a strategy with pools, and returns what it was told.
func runPooled(t *testing.T, text string, o replay.Options) (*replay.Result, []string, error) {
	t.Helper()
	events, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Capacity: 1 << 30})
	require.NoError(t, err)
	var p *pooled
	spec := setting.SpecOf("pooled", "", func(src device.Source, c bfc.Config) (alloc.Strategy, error) {
		s, err := bfc.New(src, c)
		p = &pooled{Strategy: s}
		return p, err
	}, setting.Preset{})
	setup, err := setting.Catalogue{spec}.Lookup("pooled", nil)
	require.NoError(t, err)
	res, err := replay.Run(events, setup, dev, o)
	return res, p.calls, err
}

func TestPoolEventsReachTheStrategy(t *testing.T) {
	var seen []replay.Observation
	o := replay.Options{Observe: func(o replay.Observation) error {
		o.Of, o.Strategy, o.Faults = nil, nil, nil
		seen = append(seen, o)
		return nil
	}}
	res, calls, err := runPooled(t, "pool begin 3\npool begin 4 stream=7\na 1 100\npool end 3\npool end 4\npool "+
		"release 3\n", o)
	require.NoError(t, err)
	require.Zero(t, res.Ignored)
	require.Equal(t, []string{"begin 3 -1", "begin 4 7", "end 3 0", "end 4 0", "release 3 0"}, calls)
	require.Equal(t, replay.Observation{Event: 0, Called: true, Pool: 3, Stream: power.AllStreams}, seen[1])
	require.Equal(t, replay.Observation{Event: 1, Called: true, Pool: 4, Stream: 7}, seen[2])
	require.Equal(t, replay.Observation{Event: 5, Called: true, Pool: 3}, seen[6])
}

// TestOptionsOfPoolsReachTheStrategy replays options through a strategy that has them and one that
// has private pools only.
func TestOptionsOfPoolsReachTheStrategy(t *testing.T) {
	text := "pool begin 3 options=no_split\na 1 3MiB\npool end 3\n"
	res, err := run(t, text, "caching", "", sim.Config{}, replay.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 20<<20, res.Peak.Allocated)
	_, calls, err := runPooled(t, text, replay.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"begin 3 -1", "end 3 0"}, calls)
}

func TestWithoutPoolsTheirEventsAreIgnored(t *testing.T) {
	res, err := run(t, "pool begin 3\na 1 100\npool end 3\npool release 3\n", "bfc", "", sim.Config{}, replay.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 3, res.Ignored)
	require.EqualValues(t, 1, res.Allocs)
}

func TestUnknownPoolsAreErrorsOfTheTrace(t *testing.T) {
	for line, want := range map[string]string{
		"pool begin 9":   "pooled on test: event 1: begin of pool 9: alloc: invalid pool",
		"pool end 9":     "pooled on test: event 1: end of pool 9: alloc: invalid pool",
		"pool release 9": "pooled on test: event 1: release of pool 9: alloc: invalid pool",
	} {
		_, _, err := runPooled(t, "a 1 100\n"+line+"\n", replay.Options{})
		require.ErrorIs(t, err, alloc.ErrInvalidPool)
		require.EqualError(t, err, want)
		var seen error
		o := replay.Options{Observe: func(o replay.Observation) error { seen = errors.Join(seen, o.Err); return nil }}
		_, _, err = runPooled(t, "a 1 100\n"+line+"\n", o)
		require.NoError(t, err)
		require.ErrorIs(t, seen, alloc.ErrInvalidPool)
	}
}
