package export_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/export"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/strategies"
	"github.com/vramyard/vramyard/strategies/bfc"
)

// everySetup returns each preset of each strategy, limited to a device of a capacity.
func everySetup(t *testing.T, capacity device.Size) (list []setting.Setup) {
	t.Helper()
	for _, name := range strategies.All().Names() {
		s, err := strategies.All().Lookup(name, json.RawMessage(nil))
		require.NoError(t, err)
		list = append(list, s.ForCapacity(capacity))
	}
	return list
}

// recorded makes a recording on a simulated device, and replays without one. It skips the test if
// the device is too small for the memory that the strategy reserves at start.
func recorded(t *testing.T, tr trace.Source, s setting.Setup, c sim.Config, at replay.FreeAt) (*export.Run,
	*replay.Result) {
	t.Helper()
	dev, err := sim.New(c)
	require.NoError(t, err)
	r, err := export.Replay(tr, s, dev, export.Options{FreeAt: at})
	if errors.Is(err, device.ErrOutOfMemory) {
		t.Skip(err)
	}
	require.NoError(t, err)
	dev, err = sim.New(c)
	require.NoError(t, err)
	p, err := replay.Prepare(t.Context(), tr)
	require.NoError(t, err)
	res, err := p.Run(s, dev, replay.Options{FreeAt: at})
	require.NoError(t, err)
	return r, res
}

// TestSnapshotsAreConsistent replays the history of each snapshot and compares the final state with
// the segments and blocks of the snapshot.
func TestSnapshotsAreConsistent(t *testing.T) {
	const capacity = 2 * device.GiB
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		tr := randomTrace(t, seed, 600)
		capacity := capacity >> (seed % 3 * 2)
		for _, s := range everySetup(t, capacity) {
			for _, at := range []replay.FreeAt{replay.AtCompleted, replay.AtRequested} {
				t.Run(fmt.Sprintf("%s/%d/%v", s.Name, seed, at), func(t *testing.T) {
					r, res := recorded(t, tr, s, sim.Config{Capacity: capacity}, at)
					snap, err := r.Snapshot()
					require.NoError(t, err)
					require.Len(t, snap.Devices, 1)
					d := &snap.Devices[0]
					m, err := replayed(&d.History)
					require.NoError(t, err)
					require.NoError(t, m.agrees(d.Segments))
					require.Equal(t, uint64(res.Now.Reserved), m.total(), "bytes held")
					require.Equal(t, counts{res.Allocs, res.OOMs}, countsOf(&d.History))
				})
			}
		}
	}
}

// counts is how many requests a history has.
type counts struct{ allocs, ooms uint64 }

func countsOf(h *torch.History) (c counts) {
	for i := range h.Len() {
		switch h.At(i).Action {
		case torch.ActionAlloc:
			c.allocs++
		case torch.ActionOOM:
			c.ooms++
		}
	}
	return c
}

// pieces is a trace that is handed on a few events at a time, in memory that is used again.
type pieces struct{ t *trace.Trace }

func (p pieces) Head() trace.Head { return p.t.Head() }

func (p pieces) TagOf(e *trace.Event) string { return p.t.TagOf(e) }

func (p pieces) Batches(yield func([]trace.Event) error) error {
	buffer := make([]trace.Event, 7)
	for events := range slices.Chunk(p.t.Events, len(buffer)) {
		if err := yield(buffer[:copy(buffer, events)]); err != nil {
			return err
		}
	}
	return nil
}

// TestTracesInPieces records a trace that is not in memory as a whole.
func TestTracesInPieces(t *testing.T) {
	tr := randomTrace(t, 3, 500)
	for _, name := range []string{"bfc:gc", "caching", "async"} {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		s = s.ForCapacity(device.GiB)
		whole, _ := recorded(t, tr, s, sim.Config{Capacity: device.GiB}, "")
		parts, _ := recorded(t, pieces{tr}, s, sim.Config{Capacity: device.GiB}, "")
		require.Equal(t, whole, parts, name)
	}
}

// TestEmptyTraces records traces without events: only the memory that a strategy reserves at start.
func TestEmptyTraces(t *testing.T) {
	tr := trace.NewBuilder(trace.Header{Name: "empty"}).Trace()
	for _, s := range everySetup(t, 2*device.GiB) {
		r, res := recorded(t, tr, s, sim.Config{Capacity: 2 * device.GiB}, "")
		snap, err := r.Snapshot()
		require.NoError(t, err)
		m, err := replayed(&snap.Devices[0].History)
		require.NoError(t, err)
		require.NoError(t, m.agrees(snap.Devices[0].Segments), s.Name)
		require.Equal(t, uint64(res.Now.Reserved), m.total())
		require.Positive(t, snap.Devices[0].History.Len(), "%s: the page needs an entry", s.Name)
		painted(t, r)
	}
}

// liar is a strategy that does not show a block.
type liar struct{ alloc.Strategy }

func (l liar) Walk(yield func(alloc.Chunk) bool) {
	for c := range l.Strategy.Walk {
		if c.State != alloc.Live && !yield(c) {
			return
		}
	}
}

// TestStrategiesThatHideBlocks are refused.
func TestStrategiesThatHideBlocks(t *testing.T) {
	spec := setting.SpecOf("liar", "hides its blocks", func(src device.Source, c bfc.Config) (alloc.Strategy, error) {
		b, err := bfc.New(src, c)
		return liar{b}, err
	}, setting.Preset{Doc: "the only one"})
	s, err := setting.Catalogue{spec}.Lookup("liar", json.RawMessage(`{"limit":"1MiB"}`))
	require.NoError(t, err)
	b := trace.NewBuilder(trace.Header{Name: "one"})
	require.NoError(t, b.Alloc(1, 512, 0))
	dev, err := sim.New(sim.Config{})
	require.NoError(t, err)
	_, err = export.Replay(b.Trace(), s, dev, export.Options{})
	require.ErrorContains(t, err, "reports 0 blocks in use at the end, the replay has 1")
}
