package replay_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
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
	p, err := replay.Prepare(t.Context(), tr)
	require.NoError(t, err)
	return p
}

// crowd prepares a trace of 3000 allocations, 2900 of which are freed.
func crowd(t *testing.T) *replay.Prepared {
	t.Helper()
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "a %d %d stream=%d tag=t%d\n", i, 256*(1+i*7919%97), i%3, i%5)
		if i >= 100 {
			fmt.Fprintf(&text, "f %d\n", i-100)
		}
	}
	return prepared(t, text.String())
}

func TestPreparedServesManyReplaysAtOnce(t *testing.T) {
	p := crowd(t)
	require.Equal(t, 5900, p.Head().Events)
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

// TestRareRequestOptionsTakeTheSlowPath compares a request of every kind with what reaches the
// strategy.
func TestRareRequestOptionsTakeTheSlowPath(t *testing.T) {
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

// TestARefusedReleaseFreesTheBlock replays on a device that refuses to take a region back.
func TestARefusedReleaseFreesTheBlock(t *testing.T) {
	setup, err := strategies.All().Lookup("slab", nil)
	require.NoError(t, err)
	inner, err := sim.New(sim.Config{})
	require.NoError(t, err)
	dev, err := device.NewFaults(inner, device.FaultPlan{Nth: 3}) // two reservations come before
	require.NoError(t, err)
	r, err := prepared(t, "a 1 1MiB\na 2 2MiB\nf 1\na 3 3MiB\nf 3\na 4 1MiB\n").Run(setup, dev, replay.Options{})
	require.NoError(t, err)
	require.Equal(t, uint64(2), r.Frees)
	require.Equal(t, 3*device.MiB, r.Now.Requested)
	require.Equal(t, 4*device.MiB, r.Now.Reserved)
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

// pieces is a trace that is handed on in pieces of at most so many events, each of which is wiped
// when the next one comes.
type pieces struct {
	*trace.Trace
	most int
}

func (p pieces) Batches(yield func([]trace.Event) error) error {
	buf := make([]trace.Event, p.most)
	for at := 0; at < len(p.Events); at += p.most {
		n := copy(buf, p.Events[at:])
		if err := yield(buf[:n]); err != nil {
			return err
		}
		clear(buf)
	}
	return nil
}

// TestPiecesReplayLikeTheWhole replays traces with everything that a replay has to look ahead for,
// whole and in pieces of many sizes.
func TestPiecesReplayLikeTheWhole(t *testing.T) {
	for seed := range uint64(40) {
		tr := delayedTrace(t, seed)
		whole, err := replay.Prepare(t.Context(), tr)
		require.NoError(t, err)
		for _, name := range []string{"bfc:growth", "caching"} {
			setup, err := strategies.All().Lookup(name, nil)
			require.NoError(t, err)
			for _, at := range []replay.FreeAt{replay.AtCompleted, replay.AtRequested} {
				want := replayed(t, whole, setup, at)
				for _, most := range []int{1, 7, 64, 100_000} {
					p, err := replay.Prepare(t.Context(), pieces{tr, most})
					require.NoError(t, err)
					require.Equal(t, want, replayed(t, p, setup, at), "seed %d, %s, %s, %d", seed, name, at, most)
				}
			}
		}
	}
}

// replayed replays on a small device, as far as it goes and up to the first request that is
// refused, and returns the figures, the placements and the final state.
func replayed(t *testing.T, p *replay.Prepared, setup setting.Setup, at replay.FreeAt) (all [2]string) {
	t.Helper()
	for i, stop := range []bool{false, true} {
		dev, err := sim.New(sim.Config{Capacity: 24 * device.MiB})
		require.NoError(t, err)
		var text strings.Builder
		o := replay.Options{Figures: true, FreeAt: at, Placements: &text, Final: &text, StopAtOOM: stop}
		r, err := p.Run(setup, dev, o)
		require.NoError(t, err)
		r.NsPerOp = 0
		figures, err := json.Marshal(r)
		require.NoError(t, err)
		all[i] = text.String() + string(figures)
	}
	return all
}

// delayedTrace makes up a trace with streams, uses and delayed frees; ids are used again.
func delayedTrace(t *testing.T, seed uint64) *trace.Trace {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	var b trace.Builder
	var live, freed []uint64
	pick := func(ids *[]uint64) uint64 {
		k := rng.IntN(len(*ids))
		id := (*ids)[k]
		*ids = append((*ids)[:k], (*ids)[k+1:]...)
		return id
	}
	next := uint64(0)
	for range 400 {
		e := trace.Event{Time: trace.NoTime, Stream: device.Stream(rng.IntN(3))}
		switch n := rng.IntN(10); {
		case n < 5 || len(live) == 0:
			e.Kind, e.ID, e.Size = trace.Alloc, next, device.Size(1+rng.IntN(1<<20))
			if len(freed) > 0 && rng.IntN(4) == 0 {
				e.ID = pick(&freed)
			}
			if rng.IntN(8) == 0 {
				e.Align = 512
			}
			next++
			live = append(live, e.ID)
		case n < 8:
			e.Kind, e.ID = trace.Free, pick(&live)
			freed = append(freed, e.ID)
			if rng.IntN(3) == 0 { // final at once
				require.NoError(t, b.Add(e))
				e.Kind, freed = trace.Completed, freed[:len(freed)-1]
			}
		case n == 8 && len(freed) > 0:
			e.Kind, e.ID = trace.Completed, pick(&freed)
		default:
			e.Kind, e.ID = trace.Use, live[rng.IntN(len(live))]
		}
		require.NoError(t, b.Add(e))
	}
	return b.Trace()
}

// TestReferencesChangeNoResult replays a trace freeing by address and by reference.
func TestReferencesChangeNoResult(t *testing.T) {
	p := crowd(t)
	for _, name := range []string{"tlsf", "bfc:growth", "bestfit", "caching", "vmm", "buddy"} {
		setup, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		run := func(o replay.Options) *replay.Result {
			dev, err := sim.New(sim.Config{Capacity: device.GiB})
			require.NoError(t, err)
			r, err := p.Run(setup.ForCapacity(device.GiB), dev, o)
			require.NoError(t, err)
			r.NsPerOp = 0
			return r
		}
		var byAddr, byRef strings.Builder
		run(replay.Options{Placements: &byAddr})
		run(replay.Options{Placements: &byRef, ByRef: true})
		require.Equal(t, byAddr.String(), byRef.String(), name)
		r := run(replay.Options{ByRef: true})
		require.Equal(t, run(replay.Options{}), r, name)
		require.Equal(t, name != "buddy", r.Referenced, name)
	}
}
