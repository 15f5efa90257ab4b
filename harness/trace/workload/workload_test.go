package workload_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestParametersAreJudged(t *testing.T) {
	type params = workload.Params
	for _, c := range []struct {
		shape, param, want string
		set                func(*params)
	}{
		{"w1", "live", "want 1 to 16777216", func(p *params) { p.Live = 0 }},
		{"w1", "live", "want 1 to 16777216", func(p *params) { p.Live = -1 }},
		{"w1", "live", "want 1 to 16777216", func(p *params) { p.Live = 16777217 }},
		{"w1", "live", "want 1 to 16777216", func(p *params) { p.Live = math.MaxInt }},
		{"w1", "pairs", "want 1 to 67108864", func(p *params) { p.Pairs = 0 }},
		{"w1", "pairs", "want 1 to 67108864", func(p *params) { p.Pairs = math.MaxInt }},
		{"w1", "pairs", "134218728 operations in all: want at most 134217728", func(p *params) { p.Pairs = 67108864 }},
		{"w1", "steps", "w1 has no such parameter", func(p *params) { p.Steps = 1 }},
		{"w1", "least", "w1 has no such parameter", func(p *params) { p.Least = 1 }},
		{"w2", "live", "w2 has no such parameter", func(p *params) { p.Live = 1000 }},
		{"w2", "pairs", "w2 has no such parameter", func(p *params) { p.Pairs = 1000 }},
		{"w2", "steps", "want 1 to ", func(p *params) { p.Steps = 0 }},
		{"w2", "steps", "want 1 to ", func(p *params) { p.Steps = math.MaxInt }},
		{"w3", "live", "w3 has no such parameter", func(p *params) { p.Live = 1000 }},
		{"w3", "pairs", "want at most 134217728", func(p *params) { p.Pairs = 67108864 }},
		{"lognormal", "most", "lognormal has no such parameter", func(p *params) { p.Most = device.MiB }},
		{"loguniform", "least", "want a power of two", func(p *params) { p.Least = 300 }},
		{"loguniform", "most", "want a power of two", func(p *params) { p.Most = device.MiB + 1 }},
		{"loguniform", "least", "want at most 1MiB", func(p *params) { p.Least = 2 * device.MiB }},
		{"uniform", "least", "want 1 to 549755813888", func(p *params) { p.Least = 0 }},
		{"uniform", "least", "want at most 16KiB", func(p *params) { p.Least = device.MiB }},
		{"uniform", "most", "want 1 to 549755813888", func(p *params) { p.Most = device.TiB }},
		{"uniform", "most", "want 1 to 549755813888", func(p *params) { p.Most = math.MaxUint64 }},
	} {
		s, err := workload.Lookup(c.shape)
		require.NoError(t, err)
		p := s.Default
		c.set(&p)
		_, err = s.New(p)
		var wrong *workload.ParamError
		require.ErrorAs(t, err, &wrong, "%+v", p)
		require.Equal(t, c.param, wrong.Param)
		require.ErrorContains(t, wrong.Why, c.want)
		require.ErrorContains(t, err, "workload "+c.shape+": "+c.param+": ")
	}
}

func TestBoundsAreAccepted(t *testing.T) {
	for _, set := range []func(*workload.Params){
		func(p *workload.Params) { p.Live, p.Pairs = 1, 1 },
		func(p *workload.Params) { p.Live = workload.MaxLive },
		func(p *workload.Params) { p.Seed = 0 },
		func(p *workload.Params) { p.Seed = math.MaxUint64 },
	} {
		settled(t, "w1", set)
	}
	w := settled(t, "uniform", func(p *workload.Params) {
		p.Live, p.Pairs, p.Least, p.Most = 3, 10, workload.MaxSize, workload.MaxSize
	})
	require.Equal(t, 3*workload.MaxSize, w.Summary().PeakLive)
	steps := settled(t, "w2", func(p *workload.Params) { p.Steps = 74_981 })
	require.Less(t, steps.Parts().Total(), workload.MaxOperations)
}

func TestLookupListsTheNames(t *testing.T) {
	_, err := workload.Lookup("w9")
	require.EqualError(t, err, `unknown workload "w9": want one of w1, w2, w3, lognormal, loguniform, uniform`)
	for _, s := range workload.All() {
		got, err := workload.Lookup(s.Name)
		require.NoError(t, err)
		require.Equal(t, s.Doc, got.Doc)
		_, err = s.New(s.Default)
		require.NoError(t, err)
	}
}

func TestNamesTellParameters(t *testing.T) {
	w := settled(t, "w1", nil)
	require.Equal(t, "w1", w.Name())
	require.Equal(t, "w1 live=1000 pairs=1000000 seed=42", w.String())
	w = settled(t, "loguniform", func(p *workload.Params) { p.Live, p.Most, p.Seed = 10, 2*device.MiB, 0 })
	require.Equal(t, "loguniform-live10-most2097152-seed0", w.Name())
	require.Equal(t, "loguniform live=10 pairs=1000000 least=256 most=2097152 seed=0", w.String())
	raw, err := json.Marshal(settled(t, "w2", nil).Params())
	require.NoError(t, err)
	require.JSONEq(t, `{"seed":42,"steps":300}`, string(raw))
	raw, err = json.Marshal(workload.Hash(0xabc))
	require.NoError(t, err)
	require.JSONEq(t, `"0000000000000abc"`, string(raw))
}

func TestTraceHoldsTheOperations(t *testing.T) {
	for _, name := range workload.Names() {
		t.Run(name, func(t *testing.T) {
			w := settled(t, name, func(p *workload.Params) {
				p.Live, p.Pairs, p.Steps = min(p.Live, 100), min(p.Pairs, 1000), min(p.Steps, 2)
			})
			tr, err := w.Trace()
			require.NoError(t, err)
			var ops []workload.Op
			for o := range w.Ops {
				ops = append(ops, o)
			}
			marks := map[string]int{} // operations in front of each mark
			n := 0
			for i := range tr.Events {
				e := &tr.Events[i]
				if e.Kind == trace.Mark {
					marks[tr.TagOf(e)] = n
					continue
				}
				require.Equal(t, uint64(ops[n].Slot()), e.ID)
				require.Equal(t, ops[n].Size(), e.Size)
				require.Equal(t, ops[n].IsFree(), e.Kind == trace.Free)
				n++
			}
			require.Len(t, ops, n)
			parts := w.Parts()
			require.Equal(t, parts.Fill+parts.Settle, marks["churn"])
			require.Equal(t, parts.Settle > 0, marks["settle"] > 0)
			require.Equal(t, w.Summary().PeakLive, tr.LowerBound())
			require.LessOrEqual(t, tr.Slots, w.Summary().Slots, "a short w3 leaves slots untouched")
			readsBack(t, tr)
		})
	}
}

// readsBack writes a trace in both forms and reads it again.
func readsBack(t *testing.T, tr *trace.Trace) {
	var text, table bytes.Buffer
	require.NoError(t, trace.Write(&text, tr))
	require.NoError(t, trace.WriteCSV(&table, tr))
	for _, file := range []*bytes.Buffer{&text, &table} {
		got, err := trace.Read(file, "file", trace.Options{})
		require.NoError(t, err)
		require.Equal(t, tr.Header.Name, got.Header.Name)
		require.Equal(t, tr.Header.Meta, got.Header.Meta)
		require.Equal(t, tr.LowerBound(), got.LowerBound())
		require.Equal(t, tr.Slots, got.Slots)
		require.Len(t, got.Events, len(tr.Events))
	}
}

func TestTraceTellsParametersAndCheckValues(t *testing.T) {
	tr, err := settled(t, "w3", func(p *workload.Params) { p.Pairs = 5 }).Trace()
	require.NoError(t, err)
	require.Equal(t, "w3-pairs5", tr.Header.Name)
	for _, key := range []string{"workload", "pairs", "seed", "peak_live_bytes", "workload_hash"} {
		_, ok := tr.Header.Get(key)
		require.True(t, ok, key)
	}
	_, ok := tr.Header.Get("live")
	require.False(t, ok, "w3 has no such parameter")
}

func TestTooLongTracesAreRefused(t *testing.T) {
	w := settled(t, "w1", func(p *workload.Params) { p.Pairs = 20_000_000 })
	_, err := w.Trace()
	require.EqualError(t, err, "workload w1-pairs20000000: 40001002 events: a trace holds at most 33554432")
}

func TestHashesAreReadBack(t *testing.T) {
	for _, h := range []workload.Hash{0, 1, 0x4dcbe3d1d3fd68d1, math.MaxUint64} {
		text, err := json.Marshal(h)
		require.NoError(t, err)
		var back workload.Hash
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, h, back)
	}
	require.Error(t, json.Unmarshal([]byte(`"xyz"`), new(workload.Hash)))
}

func TestAtMostLeavesFreesAndSlots(t *testing.T) {
	w := settled(t, "w1", func(p *workload.Params) { p.Live, p.Pairs = 10, 10 })
	for o := range w.Ops {
		cut := o.AtMost(device.KiB)
		require.Equal(t, o.Slot(), cut.Slot())
		require.Equal(t, o.IsFree(), cut.IsFree())
		require.Equal(t, min(o.Size(), device.KiB), cut.Size())
	}
}
