package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
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
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// counting is a strategy that counts as PyTorch does, or says so: its counters are fixed and its
// chunks are labelled by hand. A free on stream 7 is told to be delayed, until the trim.
type counting struct {
	pooled
	tell func(power.Action)
	late []device.Addr
}

func (c *counting) Counters(yield func(string, int64) bool) {
	for i, name := range []string{
		"allocated_bytes.all.current", "allocated_bytes.all.peak", "allocated_bytes.all.allocated",
		"allocated_bytes.all.freed",
		"active_bytes.all.current", "active_bytes.all.peak", "active_bytes.all.allocated", "active_bytes.all.freed",
		"reserved_bytes.all.current", "inactive_split_bytes.all.current", "requested_bytes.all.current",
		"segment.all.current",
		"num_ooms", "max_split_size",
	} {
		if !yield(name, int64(i-1)) {
			return
		}
	}
}

func (c *counting) SetHistory(tell func(power.Action)) { c.tell = tell }

func (c *counting) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := c.Strategy.Alloc(r)
	switch {
	case c.tell == nil:
	case err == nil && r.Stream == 7:
		c.late = append(c.late, b.Addr)
		c.tell(power.Action{Kind: power.SegmentMap, Addr: b.Addr, Size: b.Size, Stream: 7})
	case errors.Is(err, alloc.ErrOutOfMemory):
		c.tell(power.Action{Kind: power.OutOfMemory, Size: r.Size, Stream: r.Stream, DeviceFree: 11})
	}
	return b, err
}

func (c *counting) Trim() (device.Size, error) {
	for _, a := range c.late {
		c.tell(power.Action{Kind: power.FreeCompleted, Addr: a})
	}
	return 0, nil
}

func (c *counting) Close() error {
	if c.tell != nil {
		panic("the end of the replay is no part of the history")
	}
	return c.Strategy.Close()
}

// Walk shows blocks of 512 bytes as memory that is not there, and what is free as pending.
func (c *counting) Walk(yield func(alloc.Chunk) bool) {
	for k := range c.Strategy.Walk {
		k.Class, k.Owner, k.Stream, k.Pool = power.ClassLarge, power.OwnerExpandable, 7, 3
		switch {
		case k.State == alloc.Free:
			k.State, k.Requested = alloc.Pending, 9
		case k.Size == 512:
			k.State = alloc.Unmapped
		case k.Size == 256:
			k.State, k.Was, k.Requested = alloc.Free, 77, 0
		}
		if !yield(k) {
			return
		}
	}
}

// runCounting replays a text in PyTorch's form through such a strategy.
func runCounting(t *testing.T, text string, o replay.Options) (*replay.Result, error) {
	t.Helper()
	events, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{Dialect: "torch"})
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Capacity: 1 << 30})
	require.NoError(t, err)
	spec := setting.SpecOf("counting", "", func(src device.Source, c bfc.Config) (alloc.Strategy, error) {
		s, err := bfc.New(src, c)
		return &counting{pooled: pooled{Strategy: s}}, err
	}, setting.Preset{})
	setup, err := setting.Catalogue{spec}.Lookup("counting", json.RawMessage(workedPool))
	require.NoError(t, err)
	return replay.Run(events, setup, dev, o)
}

const torchText = "b 3 7\na 1 100 7\na 2 300\na 3 1000\na 4 0\na 5 9000 2\nf 1\ne\nn 3\nx 3\nt\na 6 200 7\n"

func TestLinesInTheFormOfPyTorch(t *testing.T) {
	var placements, final bytes.Buffer
	res, err := runCounting(t, torchText, replay.Options{Figures: true, Placements: &placements, Final: &final})
	require.NoError(t, err)
	require.Equal(t, `! segment_map 0 256 7
1 0 256
2 256 512
3 768 1024
4 NULL 0
! oom device_free=11 size=9000 stream=2
5 OOM
! free_completed 1
t -1 3 7 8 9 10 8192
! segment_map 0 256 7
6 0 256
`, placements.String())
	require.Equal(t, `= stat allocated_bytes.all -1 0 1 2
= stat active_bytes.all 3 4 5 6
= count reserved_bytes.all.current 7
`, strings.Join(strings.SplitAfter(final.String(), "\n")[:3], ""))
	require.Contains(t, final.String(), "= count num_ooms 11\n= count max_split_size 12\n"+
		`= segment 0 256 7 large expandable pool=0,3 allocated=0 active=0 requested=0
= block 0 256 77 inactive
= segment 768 7424 7 large expandable pool=0,3 allocated=1024 active=7424 requested=1009
= block 768 1024 1000 active_allocated
= block 1792 6400 9 active_pending_free
`)
	text, err := json.Marshal(res)
	require.NoError(t, err)
	require.Contains(t, string(text), `"counters":{"allocated_bytes.all.current":-1,"allocated_bytes.all.peak":0,`)
}

func TestLinesInTheFormOfPyTorchNeedItsCounters(t *testing.T) {
	events, err := trace.Read(strings.NewReader(torchText), "test.trace", trace.Options{Dialect: "torch"})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("bfc", json.RawMessage(workedPool))
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	var placements, final bytes.Buffer
	res, err := replay.Run(events, setup, dev, replay.Options{Figures: true, Placements: &placements, Final: &final})
	require.NoError(t, err)
	require.Equal(t, "1 0 256\n2 256 512\n3 768 1024\n4 NULL\n5 OOM\n6 0 256\n", placements.String())
	require.Contains(t, final.String(), "S num_allocs 4\n")
	require.EqualValues(t, 4, res.Ignored, "pools and totals")
	require.Nil(t, res.Counters)
}

func TestSegmentsOfPyTorchEndBeforeWhatTheDeviceAdds(t *testing.T) {
	events, err := trace.Read(strings.NewReader("a 1 4194304\n"), "test.trace", trace.Options{Dialect: "torch"})
	require.NoError(t, err)
	setup, err := strategies.All().Lookup("caching", json.RawMessage(`{"conf":"large_segment_size_mb:11"}`))
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Round: 2 * device.MiB})
	require.NoError(t, err)
	var final bytes.Buffer
	_, err = replay.Run(events, setup, dev, replay.Options{Figures: true, Final: &final})
	require.NoError(t, err)
	_, segments, _ := strings.Cut(final.String(), "= segment ")
	require.Equal(t, `0 11534336 0 large fixed pool=0,0 allocated=4194304 active=4194304 requested=4194304
= block 0 4194304 4194304 active_allocated
= block 4194304 7340032 0 inactive
`, segments)
}

func TestHistoryOfBlocksThatWereNeverGrantedIsAnError(t *testing.T) {
	_, err := runCounting(t, "a 1 100 7\ne\n", replay.Options{Placements: &bytes.Buffer{}})
	require.NoError(t, err)
	setups := setting.SpecOf("liar", "", func(src device.Source, c bfc.Config) (alloc.Strategy, error) {
		s, err := bfc.New(src, c)
		return &counting{pooled: pooled{Strategy: s}, late: []device.Addr{5}}, err
	}, setting.Preset{})
	setup, err := setting.Catalogue{setups}.Lookup("liar", nil)
	require.NoError(t, err)
	events, err := trace.Read(strings.NewReader("a 1 100\ne\n"), "test.trace", trace.Options{Dialect: "torch"})
	require.NoError(t, err)
	dev, err := sim.New(sim.Config{Capacity: 1 << 30})
	require.NoError(t, err)
	_, err = replay.Run(events, setup, dev, replay.Options{Placements: &bytes.Buffer{}})
	require.EqualError(t, err, "liar on test: the strategy completed a free at 0x5, where it granted no block")
}

func TestWriterErrorsInTheFormOfPyTorch(t *testing.T) {
	for after := range 3 {
		_, err := runCounting(t, "a 1 100 7\na 2 100\ne\n", replay.Options{Placements: &brokenAfter{after}})
		require.ErrorIs(t, err, errBroken)
	}
}

var errBroken = errors.New("broken pipe")

// brokenAfter fails after some writes.
type brokenAfter struct{ left int }

func (b *brokenAfter) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}
