package memutils_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/benchmarks/peers/memutils"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// The interface that package bench asks for.
var _ bench.Named = (*memutils.Peer)(nil)

// program returns the operations of a workload; no live blocks stand for the shape's own.
func program(t *testing.T, name string, live int) *workload.Program {
	t.Helper()
	shape, err := workload.Lookup(name)
	require.NoError(t, err)
	p := shape.Default
	if live != 0 {
		p.Live = live
	}
	w, err := shape.New(p)
	require.NoError(t, err)
	return w.Program()
}

// setup returns the peer of a name or name:preset.
func setup(t *testing.T, name, config string) setting.Setup {
	t.Helper()
	s, err := setting.Catalogue{memutils.Spec()}.Lookup(name, json.RawMessage(config))
	require.NoError(t, err)
	return s
}

// TestPlacementsMatchThePublishedOnes also shows that every request is granted: an allocator that
// refuses all of them looks faster than any that works.
func TestPlacementsMatchThePublishedOnes(t *testing.T) {
	for _, c := range []struct {
		workload string
		live     int
		address  float64
	}{
		{"w1", 1_000, 1.208},
		{"w1", 10_000, 1.177},
		{"w1", 100_000, 1.117},
		{"w2", 0, 1.0028},
		{"w3", 0, 1.126},
	} {
		s := setup(t, "memutils", "")
		load := bench.NewWorkload(program(t, c.workload, c.live), workload.MaxSize)
		for _, n := range []device.Size{memutils.Range + memutils.Align, device.AlignUp(4*load.PeakLive, device.GiB)} {
			f, err := load.Figures(bench.Candidate{Name: s.Name, Device: replay.SimTarget(sim.Config{Capacity: n}),
				New: s.ForCapacity(n).New})
			require.NoError(t, err)
			require.InDelta(t, c.address, float64(f.Address)/float64(load.PeakLive), .0005, "%s %d on %v",
				c.workload, c.live, n)
			require.True(t, f.Named)
		}
	}
}

// TestBlocksAreDisjoint walks the whole range in the midst of a churn.
func TestBlocksAreDisjoint(t *testing.T) {
	for _, preset := range memutils.Spec().Presets {
		dev, err := sim.New(sim.Config{})
		require.NoError(t, err)
		s, err := setup(t, strings.TrimSuffix("memutils:"+preset.Name, ":"), "").New(dev)
		require.NoError(t, err)
		p := program(t, "w1", 1000)
		live, sizes := make([]device.Addr, 1000), make([]device.Size, 1000)
		for i, op := range append(p.Fill, p.Churn[:20_000]...) {
			if op.IsFree() {
				require.NoError(t, s.Free(live[op.Slot()]))
				continue
			}
			b, err := s.Alloc(alloc.Request{Size: op.Size()})
			require.NoError(t, err)
			live[op.Slot()], sizes[op.Slot()] = b.Addr, op.Size()
			if i%1000 == 999 {
				judge(t, s, live, sizes)
			}
		}
		require.NoError(t, s.Close())
		require.ErrorIs(t, s.Close(), alloc.ErrClosed)
	}
}

// judge compares what the peer shows with the blocks that it granted.
func judge(t *testing.T, s alloc.Strategy, live []device.Addr, sizes []device.Size) {
	t.Helper()
	granted := map[device.Addr]device.Size{}
	for slot, handle := range live {
		if handle != 0 {
			at := s.(bench.Named).AddrOf(handle)
			require.True(t, at.IsAligned(memutils.Align))
			granted[at] = sizes[slot]
		}
	}
	var end device.Addr
	for c := range s.Walk {
		if end != 0 {
			require.Equal(t, end, c.Addr, "no gap, no overlap")
		}
		end = c.Addr.Add(c.Size)
		if c.State == alloc.Live {
			require.Equal(t, granted[c.Addr], c.Size)
			delete(granted, c.Addr)
		}
	}
	require.Empty(t, granted, "every block is seen")
	require.NoError(t, s.Check())
	require.Equal(t, memutils.Range, s.Stats().Reserved)
}

func TestOutOfMemoryIsReported(t *testing.T) {
	dev, err := sim.New(sim.Config{Capacity: device.MiB})
	require.NoError(t, err)
	s, err := setup(t, "memutils", "").ForCapacity(device.MiB).New(dev)
	require.NoError(t, err)
	for range 4 {
		_, err = s.Alloc(alloc.Request{Size: 256 * device.KiB})
		require.NoError(t, err)
	}
	for _, n := range []device.Size{1, device.MiB + 1} {
		_, err = s.Alloc(alloc.Request{Size: n})
		require.ErrorIs(t, err, alloc.ErrOutOfMemory)
	}
	_, err = s.Alloc(alloc.Request{})
	require.ErrorIs(t, err, alloc.ErrInvalidRequest)
	_, err = memutils.New(dev, memutils.Config{})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
}

func TestWrongConfigurations(t *testing.T) {
	for _, config := range []string{`{"fit":"best"}`, `{"range":100}`, `{"range":1099511627776}`, `{"gap":1}`} {
		_, err := setting.Catalogue{memutils.Spec()}.Lookup("memutils", json.RawMessage(config))
		require.Error(t, err, config)
	}
}
