package follow_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/replay/follow"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// delayed is a trace whose first block is used by another stream while it is freed.
const delayed = "a 1 1MiB\nuse 1 7\nf 1\na 2 1MiB\ndrain 6\na 3 1MiB\ndrain 7\na 4 1MiB\nf 2\npoll\n"

func readTrace(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "test.trace", trace.Options{})
	require.NoError(t, err)
	return tr
}

// TestFollowedBlocksMatchTheWalk compares the follower's blocks with a walk after every event, for
// every strategy of the catalogue.
func TestFollowedBlocksMatchTheWalk(t *testing.T) {
	tr := readTrace(t, delayed)
	for _, name := range strategies.All().Names() {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		dev, err := sim.New(sim.Config{Capacity: 8 * device.GiB})
		require.NoError(t, err)
		tap := follow.NewTap(dev)
		f := follow.New(tap, follow.Watcher{})
		_, err = replay.Run(tr, s.ForCapacity(8*device.GiB), tap, replay.Options{Observe: func(o replay.Observation) error {
			switch {
			case o.Event < 0:
				f.Begin(o.Strategy, true)
				return nil
			case o.Of == nil:
				return nil
			}
			if err := f.Event(&o); err != nil {
				return err
			}
			requireWalk(t, f, o.Strategy)
			return nil
		}})
		require.NoError(t, err, name)
	}
}

// requireWalk compares blocks in use with the chunks of a walk.
func requireWalk(t *testing.T, f *follow.Follower, s alloc.Strategy) {
	t.Helper()
	want, got := map[device.Addr]alloc.State{}, map[device.Addr]alloc.State{}
	for c := range s.Walk {
		if c.State == alloc.Live || c.State == alloc.Pending {
			want[c.Addr] = c.State
		}
	}
	for b := range f.Blocks {
		got[b.Addr] = alloc.Live
		if b.Phase == follow.Pending {
			got[b.Addr] = alloc.Pending
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, len(want), f.InUse())
}

// TestBlockCallbacksComeInOrder follows one block over a stream that delays it.
func TestBlockCallbacksComeInOrder(t *testing.T) {
	var told []string
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	tap := follow.NewTap(dev)
	f := follow.New(tap, follow.Watcher{
		Granted:   func(_ *trace.Event, b *follow.Block) { told = append(told, "granted "+string('0'+rune(b.ID))) },
		Freed:     func(b *follow.Block) { told = append(told, "freed "+string('0'+rune(b.ID))) },
		Reclaimed: func(_ int, b *follow.Block) { told = append(told, "reclaimed "+string('0'+rune(b.ID))) },
	})
	s, err := strategies.All().Lookup("caching", nil)
	require.NoError(t, err)
	_, err = replay.Run(readTrace(t, delayed), s, tap, replay.Options{Observe: func(o replay.Observation) error {
		switch {
		case o.Event < 0:
			f.Begin(o.Strategy, true)
		case o.Of != nil:
			return f.Event(&o)
		}
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"granted 1", "freed 1", "granted 2", "granted 3", "reclaimed 1", "granted 4", "freed 2", "reclaimed 2",
	}, told)
	require.NotZero(t, tap.Spent())
	require.NotEmpty(t, tap.NewCalls())
	require.Empty(t, tap.NewCalls())
}

// TestAPanicIsAnError checks that the error contains the value of the panic.
func TestAPanicIsAnError(t *testing.T) {
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	f := follow.New(follow.NewTap(dev), follow.Watcher{})
	require.EqualError(t, f.Event(&replay.Observation{Panic: errors.New("B3")}), "the strategy panicked: B3")
}
