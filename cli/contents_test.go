package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

func TestCheckWithContents(t *testing.T) {
	out := succeed(t, "check", "--contents", "--faults", "--strategies", "bestfit,buddy:xdl", "--tests", "40")
	require.Contains(t, out, "bestfit@24MiB/filled")
	require.Contains(t, out, "buddy:xdl@8GiB/filled")
	require.Contains(t, out, "every invariant held\n")
}

func TestReplayWithContents(t *testing.T) {
	path := write(t, "t.trace", small)
	plain := succeed(t, "replay", "--strategy", "bfc", "--placements", "-", path)
	require.Equal(t, plain, succeed(t, "replay", "--contents", "--strategy", "bfc", "--placements", "-", path))
	out := succeed(t, "replay", "--contents", "--strategy", "bfc", "--device", "sim:l4-24g", path)
	require.True(t, strings.HasSuffix(out, "every block kept its contents through 6 events\n"), out)
	require.NotContains(t, out, "fill", "what looks for corruption is in no figure")
	out = succeed(t, "replay", "--contents", "--check", "--strategy", "bfc", path)
	require.Contains(t, out, "every invariant held after each of 6 events\n")
}

// crowding is a strategy that puts its second block over its first.
type crowding struct {
	alloc.Strategy
	first alloc.Block
}

func (c *crowding) Alloc(r alloc.Request) (alloc.Block, error) {
	b, err := c.Strategy.Alloc(r)
	if c.first.Size == 0 {
		c.first = b
		return b, err
	}
	b.Addr = c.first.Addr + 16
	return b, err
}

// TestReplayFindsCorruption replays what only the memory shows to who trusts addresses.
func TestReplayFindsCorruption(t *testing.T) {
	build := func(src device.Source, _ struct{}) (alloc.Strategy, error) {
		setup, err := everything.Lookup("bestfit", nil)
		require.NoError(t, err)
		s, err := setup.New(src)
		return &crowding{Strategy: s}, err
	}
	setup, err := setting.Catalogue{setting.SpecOf("crowding", "", build, setting.Preset{})}.Lookup("crowding", nil)
	require.NoError(t, err)
	for _, check := range []bool{false, true} {
		path := write(t, "t.trace", "a 1 1000\na 2 1000\nf 1\n")
		events, err := trace.Open(path, trace.Options{})
		require.NoError(t, err)
		f := replayFlags{contents: true, check: check}
		p, err := replay.Prepare(t.Context(), events)
		require.NoError(t, err)
		err = f.prove(p, events, setup, replay.Target{}, replay.Options{})
		require.ErrorContains(t, err, "grant 1, ")
		require.ErrorContains(t, err, "overwritten at 0x7f0000000010")
		if check {
			require.ErrorContains(t, err, "event 1: I51 (contents)")
		}
	}
}
