package bench_test

import (
	"context"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/strategies"
)

// measured returns the report of a short benchmark.
func measured(t *testing.T, o bench.Options, w workload.Workload, setups ...setting.Setup) *bench.Report {
	t.Helper()
	o.Rounds = max(o.Rounds, 2)
	r, err := bench.Measure(t.Context(), []workload.Workload{w}, setups, o)
	require.NoError(t, err)
	require.Len(t, r.Loops, 1)
	require.Len(t, r.Runs, len(setups))
	return r
}

func TestFiguresOfKnownPlacement(t *testing.T) {
	exact := setup(t, `{"page":4096,"pages":20}`)
	double := setup(t, `{"page":8192,"pages":16,"quiet":true}`)
	r := measured(t, bench.Options{Arena: true, Rounds: 3}, pages(t, 10, 500), exact, double)

	one, two := r.Runs[0], r.Runs[1]
	for _, run := range r.Runs {
		require.Equal(t, "uniform", run.Workload)
		require.Equal(t, 10, run.Live)
		require.Equal(t, 500, run.Pairs)
		require.EqualValues(t, 40*device.KiB, run.PeakLive)
		require.Equal(t, device.GiB, run.Device, "ample")
		require.True(t, run.Preallocates)
		require.Len(t, run.Rounds, 3)
		require.LessOrEqual(t, run.Min, run.Median)
		require.LessOrEqual(t, run.Median, run.Max)
		require.EqualValues(t, 1000, run.Latency.Count, "operations of the churn")
		require.EqualValues(t, 500, run.Latency.Alloc.Count)
		require.EqualValues(t, 500, run.Latency.Free.Count)
		require.GreaterOrEqual(t, run.Latency.Max, run.Latency.Alloc.Max)
	}
	require.InDelta(t, 1, one.Ratio, 0, "to itself")

	// Ten of the lowest pages are live at any time, and one is freed before another is asked for.
	require.Equal(t, 40*device.KiB, one.Address)
	require.InDelta(t, 1, one.AddressRatio, 0)
	require.Equal(t, 80*device.KiB, one.Reserved)
	require.InDelta(t, 2, one.ReservedRatio, 0)
	require.InDelta(t, 1, *one.ArenaRatio, .0065, "the grid of 256 B")
	require.EqualValues(t, 20, *one.Metadata)
	require.InDelta(t, 2, *one.MetadataPerBlock, 0)

	require.InDelta(t, 2, two.AddressRatio, 0)
	require.InDelta(t, 3.2, two.ReservedRatio, 0)
	require.Equal(t, 80*device.KiB, device.AlignDown(*two.Arena, device.KiB))
	require.Nil(t, two.Metadata, "it does not tell")
	require.Nil(t, two.MetadataPerBlock)
	require.JSONEq(t, `{"page":8192,"pages":16,"quiet":true,"waste":false,"keep_from":0}`, string(two.Config))
}

func TestArenaIsNotSearchedUnasked(t *testing.T) {
	run := measured(t, bench.Options{}, pages(t, 10, 10), setup(t, `{"page":4096,"pages":10}`)).Runs[0]
	require.Nil(t, run.Arena)
	require.Nil(t, run.ArenaRatio)
}

func TestHeapFigures(t *testing.T) {
	w := pages(t, 10, 5000)
	r := measured(t, bench.Options{}, w, setup(t, `{"page":4096,"pages":1048576}`),
		setup(t, `{"page":4096,"pages":10,"waste":true}`))
	large, wasteful := r.Runs[0], r.Runs[1]
	// Its 4 GiB of pages are cut down to the 1 GiB of an ample device: a byte for each page.
	require.InEpsilon(t, 1<<18/10, large.HeapPerBlock, .05)
	require.Less(t, large.MallocsPerPair, .1)
	require.GreaterOrEqual(t, wasteful.MallocsPerPair, 1.)
	require.Less(t, wasteful.MallocsPerPair, 1.1)
}

func TestCapacityIsTheDevice(t *testing.T) {
	r := measured(t, bench.Options{Capacity: 64 * device.KiB}, pages(t, 10, 10), setup(t, `{"page":4096,"pages":1000}`))
	require.Equal(t, 64*device.KiB, r.Runs[0].Reserved)
	require.Equal(t, 64*device.KiB, r.Runs[0].Device)
}

func TestRefusalsNameThePlace(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`{"page":4096,"pages":5}`, "operation 5, allocate 4096 bytes into slot 5: alloc: out of memory"},
		{`{"page":2048,"pages":50}`, "operation 0, allocate 4096 bytes into slot 0: alloc: invalid request"},
		{`{"page":4096,"pages":50,"keep_from":1}`, "free slot "},
	} {
		_, err := bench.Measure(t.Context(), []workload.Workload{pages(t, 10, 10)}, []setting.Setup{setup(t, c.config)},
			bench.Options{Rounds: 1})
		require.ErrorContains(t, err, "toy on uniform live=10 pairs=10 least=4096 most=4096 seed=42: operation ")
		require.ErrorContains(t, err, c.want)
		var r *bench.Refusal
		require.ErrorAs(t, err, &r)
	}
	blaze, err := strategies.All().Lookup("slab:blaze", nil)
	require.NoError(t, err)
	w2 := settled(t, "w2", func(p *workload.Params) { p.Steps = 1 })
	_, err = bench.Measure(t.Context(), []workload.Workload{w2}, []setting.Setup{blaze}, bench.Options{Rounds: 1})
	require.ErrorIs(t, err, alloc.ErrInvalidRequest)
	require.ErrorContains(t, err, "slab:blaze on w2 steps=1 seed=42: operation 530, ", "the 531st, as the original")
	require.ErrorContains(t, err, "(above the strategy's maximum)")
	_, err = bench.Measure(t.Context(), []workload.Workload{w2}, []setting.Setup{blaze},
		bench.Options{Rounds: 1, Capacity: 1})
	require.Error(t, err, "no room for anything")
}

func TestWrongOptions(t *testing.T) {
	w, s := []workload.Workload{pages(t, 1, 1)}, []setting.Setup{setup(t, `{"page":4096,"pages":5}`)}
	_, err := bench.Measure(t.Context(), w, s, bench.Options{})
	require.ErrorContains(t, err, "at least one round")
	_, err = bench.Measure(t.Context(), nil, s, bench.Options{Rounds: 1})
	require.ErrorContains(t, err, "at least one workload")
	_, err = bench.Measure(t.Context(), w, nil, bench.Options{Rounds: 1})
	require.ErrorContains(t, err, "at least one workload and one strategy")
}

func TestProgressCountsEveryRun(t *testing.T) {
	var seen []int
	o := bench.Options{Arena: true, Rounds: 2, Progress: func(done, known int) {
		require.Equal(t, 10, known)
		seen = append(seen, done)
	}}
	s := setup(t, `{"page":4096,"pages":5}`)
	measured(t, o, pages(t, 2, 10), s, s)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, seen)
}

// TestTheShareWeighsWorkloadsByTheirEvents has a second workload with a hundred times as many
// blocks.
func TestTheShareWeighsWorkloadsByTheirEvents(t *testing.T) {
	loads := []workload.Workload{
		settled(t, "w1", func(p *workload.Params) { p.Live, p.Pairs = 10, 100 }),
		settled(t, "w1", func(p *workload.Params) { p.Live, p.Pairs = 1000, 100 }),
	}
	s, err := strategies.All().Lookup("tlsf", nil)
	require.NoError(t, err)
	var shares, want []float64
	o := bench.Options{Rounds: 1, Share: func(done float64) { shares = append(shares, done) }}
	_, err = bench.Measure(t.Context(), loads, []setting.Setup{s}, o)
	require.NoError(t, err)
	a, b := float64(loads[0].Events()), float64(loads[1].Events())
	require.Greater(t, b, 5*a)
	for i := range 6 {
		want = append(want, (min(float64(i+1), 3)*a+max(float64(i-2), 0)*b)/(3*(a+b)))
	}
	require.InDeltaSlice(t, want, shares, 1e-9)
}

// TestTheSameEverywhere compares all figures that the clock and the Go heap have no part in.
func TestTheSameEverywhere(t *testing.T) {
	var setups []setting.Setup
	for _, name := range []string{"tlsf", "bfc:growth", "buddy", "slab"} {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		setups = append(setups, s)
	}
	all := []workload.Workload{
		settled(t, "w1", func(p *workload.Params) { p.Live, p.Pairs = 100, 500 }),
		settled(t, "w2", func(p *workload.Params) { p.Steps = 1 }),
		settled(t, "w3", func(p *workload.Params) { p.Pairs = 500 }),
		settled(t, "lognormal", func(p *workload.Params) { p.Live, p.Pairs = 100, 500 }),
	}
	exact := func() string {
		r, err := bench.Measure(t.Context(), all, setups, bench.Options{Rounds: 2, Arena: true})
		require.NoError(t, err)
		r.Machine = bench.Machine{}
		for i := range r.Loops {
			r.Loops[i].Timing = bench.Timing{}
		}
		for i := range r.Runs {
			run := &r.Runs[i]
			require.NotZero(t, run.AddressRatio)
			run.ByRef = nil
			run.Timing, run.Ratio, run.Latency, run.HeapPerBlock, run.MallocsPerPair = bench.Timing{}, 0, bench.Latency{}, 0, 0
		}
		text, err := json.Marshal(r)
		require.NoError(t, err)
		return string(text)
	}
	first := exact()
	for _, cores := range []int{1, 3} {
		was := runtime.GOMAXPROCS(cores)
		again := exact()
		runtime.GOMAXPROCS(was)
		require.Equal(t, first, again, "%d cores", cores)
	}
}

// TestKeysStay holds the names that scripts read.
func TestKeysStay(t *testing.T) {
	r := measured(t, bench.Options{}, pages(t, 10, 10), setup(t, `{"page":4096,"pages":10}`))
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var top map[string]any
	require.NoError(t, json.Unmarshal(text, &top))
	require.Equal(t, "vramyard-bench/1", top["schema"])
	require.Equal(t, provenance.Version, top["provenance"].(map[string]any)["version"])
	require.Contains(t, []any{replay.ThreadCPU, replay.Wall}, top["clock"])
	require.Equal(t, replay.ClockName(), top["clock"])
	require.Equal(t, []string{"clock", "device", "loops", "machine", "provenance", "rounds", "runs", "schema"},
		slices.Sorted(maps.Keys(top)))

	machine := top["machine"].(map[string]any)
	require.Equal(t, runtime.Version(), machine["go"])
	require.Equal(t, []string{"arch", "cpu", "cpus", "go", "os"}, slices.Sorted(maps.Keys(machine)))

	load := []string{"device_bytes", "live", "pairs", "parameters", "peak_live_bytes", "workload", "workload_hash"}
	timing := []string{"ns_per_pair_max", "ns_per_pair_median", "ns_per_pair_min", "ns_per_pair_rounds"}
	loop := top["loops"].([]any)[0].(map[string]any)
	require.ElementsMatch(t, slices.Concat(load, timing), slices.Collect(maps.Keys(loop)))

	run := top["runs"].([]any)[0].(map[string]any)
	require.ElementsMatch(t, slices.Concat(load, timing, []string{
		"strategy", "config", "preallocates", "is_baseline", "named", "ratio_to_first", "latency",
		"address_ratio", "reserved_ratio", "arena_ratio", "address_bytes", "peak_reserved_bytes", "smallest_arena_bytes",
		"metadata_bytes", "metadata_bytes_per_block", "heap_bytes_per_block", "heap_allocs_per_pair",
	}), slices.Collect(maps.Keys(run)))
	require.Nil(t, run["arena_ratio"])

	quantiles := []string{"count", "p50_ns", "p99_ns", "p999_ns", "max_ns"}
	latency := run["latency"].(map[string]any)
	require.ElementsMatch(t, append([]string{"alloc", "free", "clock_ns"}, quantiles...),
		slices.Collect(maps.Keys(latency)))
	require.ElementsMatch(t, quantiles, slices.Collect(maps.Keys(latency["alloc"].(map[string]any))))
}

func TestAStoppedBenchmarkHasWhatIsFinished(t *testing.T) {
	exact := setup(t, `{"page":4096,"pages":20}`)
	w := []workload.Workload{pages(t, 10, 50), pages(t, 9, 50)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o := bench.Options{Rounds: 2, Progress: func(done, _ int) {
		if done == 5 { // the first workload has four runs
			stop()
		}
	}}
	r, err := bench.Measure(ctx, w, []setting.Setup{exact}, o)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, r.Runs, 1)
	require.Len(t, r.Loops, 1)
	require.Equal(t, 10, r.Runs[0].Live)
}
