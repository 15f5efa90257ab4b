package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/study/tune"
)

// verdictOf returns the first line of a comparison of strategies on one trace; a minimum of 0 is
// none.
func verdictOf(t *testing.T, minima map[string]device.Size, order ...string) string {
	t.Helper()
	var r compare.Report
	for _, name := range order {
		run := compare.Run{Figures: compare.Figures{
			Trace: "chat", Strategy: name, Baseline: name == "direct", Starts: true, LowerBound: device.GiB}}
		if n := minima[name]; n != 0 {
			run.MinCapacity = &n
		}
		if n := minima[name]; n == 0 || n > 18*device.GiB {
			run.Device, run.OOMs = 18*device.GiB, 1
		}
		r.Runs = append(r.Runs, run)
	}
	var b strings.Builder
	require.NoError(t, report.CompareTables(&b, &r))
	first, _, _ := strings.Cut(b.String(), "\n")
	return first
}

// TestComparisonsBeginWithTheWinner also has a rival whose multiple of the least memory rounds to
// 1.00: the sentence leaves it out.
func TestComparisonsBeginWithTheWinner(t *testing.T) {
	minima := map[string]device.Size{
		"bfc": 20 * device.GiB, "caching": 18 * device.GiB, "slab": 15 * device.GiB, "buddy": 15 * device.GiB,
		"direct": 14 * device.GiB, "near": 15*device.GiB + 64*device.MiB,
		"tlsf": 15 * device.GiB, "vmm": 15 * device.GiB, "stitch": 15 * device.GiB,
	}
	for _, c := range []struct {
		strategies []string
		want       string
	}{
		{[]string{"bfc", "slab", "caching"}, "slab completes chat with least memory: 15.00 GiB; caching needs " +
			"1.20 × as much (18.00 GiB). bfc fails."},
		{[]string{"bfc", "slab"}, "slab completes chat with least memory: 15.00 GiB; bfc needs 1.33 × as much " +
			"(20.00 GiB). bfc fails."},
		{[]string{"bfc", "caching"}, "caching completes chat with least memory: 18.00 GiB; bfc needs 1.11 " +
			"× as much (20.00 GiB). bfc fails."},
		{[]string{"slab", "buddy", "caching"}, "slab and buddy complete chat with least memory: 15.00 GiB; " +
			"caching needs 1.20 × as much (18.00 GiB)."},
		{[]string{"slab", "buddy", "tlsf", "vmm", "stitch"}, "slab, buddy, tlsf and 2 more complete chat with least " +
			"memory: 15.00 GiB."},
		{[]string{"near", "slab"}, "slab completes chat with least memory: 15.00 GiB."},
		{[]string{"direct", "slab"}, "slab completes chat with least memory: 15.00 GiB."},
		{[]string{"direct"}, "direct, the baseline, completes chat."},
		{[]string{"slab", "async", "xdl"}, "slab completes chat with least memory: 15.00 GiB. async and xdl fail."},
		{[]string{"slab", "async"}, "slab completes chat with least memory: 15.00 GiB. async fails."},
		{[]string{"async"}, "No strategy completes chat."},
		{[]string{"direct", "async"}, "No strategy but direct, the baseline, completes chat."},
		{[]string{"bfc", "async"}, "No strategy completes chat on 18.00 GiB; bfc needs least, 20.00 GiB."},
	} {
		require.Equal(t, c.want, verdictOf(t, minima, c.strategies...))
	}
}

// TestVerdictsNameTheFailuresAboveTheMinimum has a strategy that fails on a larger device than it
// needs.
func TestVerdictsNameTheFailuresAboveTheMinimum(t *testing.T) {
	size := func(n device.Size) *device.Size { n *= device.GiB; return &n }
	near := size(13)
	*near += 2 * device.MiB
	for _, c := range []struct {
		above, safe *device.Size
		want        string
	}{
		{size(13), size(14), "bfc completes on 10.00 GiB, fails again up to 13.00 GiB and is safe from 14.00 GiB."},
		{size(13), near, "bfc completes on 10.00 GiB, fails again up to 13.00 GiB and is safe from 2.00 MiB above that."},
		{nil, size(10), "bfc completes on 10.00 GiB and fails again up to 11.00 GiB."},
		{size(12), nil, "bfc completes on 10.00 GiB and fails again up to 12.00 GiB."},
	} {
		var b strings.Builder
		require.NoError(t, report.CompareTables(&b, reportOf(compare.Figures{
			Trace: "chat", Strategy: "bfc", Starts: true, OOMs: 1, Device: *size(11), LowerBound: *size(9),
			MinCapacity: size(10), FailsAbove: c.above, SafeFrom: c.safe,
		})))
		first, _, _ := strings.Cut(b.String(), "\n")
		require.Equal(t, "No strategy completes chat on 11.00 GiB; "+c.want, first)
	}
}

func TestBenchmarksBeginWithTheFastest(t *testing.T) {
	load := bench.Load{Workload: "w1", Live: 100}
	r := &bench.Report{Loops: []bench.Loop{{Load: load}}, Runs: []bench.Run{
		{Strategy: "slow", Timing: bench.Timing{Median: 75, Min: 70, Max: 80}},
		{Strategy: "fast", Timing: bench.Timing{Median: 50, Min: 48, Max: 60}},
	}}
	for _, want := range []string{
		"\nfast is fastest on w1 with 100 blocks: 50.0 ns/pair; slow takes 1.50 × as long.\n",
		"\nfast is fastest on w1 with 100 blocks: 50.0 ns/pair; slow takes 1.50 × as long. The rounds of fast and slow " +
			"overlap.\n",
		"\nslow takes 75.0 ns/pair on w1 with 100 blocks.\n",
	} {
		var b strings.Builder
		require.NoError(t, report.BenchTables(&b, r))
		require.Contains(t, b.String(), want)
		if r.Runs[0].Min == 60 {
			r.Runs = r.Runs[:1]
		}
		r.Runs[0].Min = 60
	}
}

// TestVerdictsNeverNameTheBaseline has a baseline that is faster and needs less than everything
// else.
func TestVerdictsNeverNameTheBaseline(t *testing.T) {
	load := bench.Load{Workload: "w1", Live: 100}
	r := &bench.Report{Loops: []bench.Loop{{Load: load}}, Runs: []bench.Run{
		{Strategy: "direct", Baseline: true, Timing: bench.Timing{Median: 10, Min: 9, Max: 11}},
		{Strategy: "slow", Timing: bench.Timing{Median: 75, Min: 70, Max: 80}},
		{Strategy: "fast", Timing: bench.Timing{Median: 50, Min: 48, Max: 60}},
	}}
	var b strings.Builder
	require.NoError(t, report.BenchTables(&b, r))
	require.Contains(t, b.String(), "\nfast is fastest on w1 with 100 blocks: 50.0 ns/pair; slow takes 1.50 × as long.\n")

	bound := 1.0
	p := tune.Point{TimesBound: &bound, NsPerOp: 100, Config: []byte("{}")}
	b.Reset()
	require.NoError(t, report.TuneTables(&b, &tune.Result{Strategy: "direct", Baseline: true, Preset: p, Smallest: p,
		Fastest: p}))
	require.Contains(t, b.String(), "direct, the baseline, needs 1.000 × the lower bound and takes 100 ns/op.\n")
}

// TestVerdictsOfTuneCompareWithThePreset leaves out a multiple that rounds to 1.00.
func TestVerdictsOfTuneCompareWithThePreset(t *testing.T) {
	point := func(bound, ns float64, config string) tune.Point {
		return tune.Point{TimesBound: &bound, NsPerOp: ns, Config: []byte(config)}
	}
	const start = `fit with a=1 needs least memory: 1.000 × the lower bound`
	for _, c := range []struct {
		preset tune.Point
		want   string
	}{
		{point(1.5, 120, "{}"), start + "; the preset needs 1.50 × as much. fit with a=1 takes least time: 100 ns/op; " +
			"the preset takes 1.20 × as long."},
		{point(1.004, 100.4, "{}"), start + ", as much as the preset. fit with a=1 takes least time: 100 ns/op."},
		{point(1, 90, "{}"), start + ", as much as the preset. fit with a=1 takes least time: 100 ns/op."},
	} {
		best := point(1, 100, `{"a":1}`)
		var b strings.Builder
		require.NoError(t, report.TuneTables(&b, &tune.Result{Strategy: "fit", Preset: c.preset, Smallest: best,
			Fastest: best}))
		first, _, _ := strings.Cut(b.String(), "\n")
		require.Equal(t, c.want, first)
	}
}

func TestPackingsBeginWithTheirHeight(t *testing.T) {
	const known = "Packed with all of it known in advance, "
	for _, c := range []struct {
		best     offline.Placement
		capacity device.Size
		lacks    string
		want     string
	}{
		{offline.Placement{Height: 100, Optimal: true, ProvenBound: 100}, 0, "", known + "chat fits in 100 B, its lower " +
			"bound: no placement is lower."},
		{offline.Placement{Height: 110, Optimal: true, ProvenBound: 110}, 0, "", known + "chat fits in 110 B, 10 B above " +
			"its lower bound: no placement is lower."},
		{offline.Placement{Height: 110, ProvenBound: 104}, 120, "", known + "chat fits in 110 B, 10 B above its lower " +
			"bound; a placement up to 6 B lower is not ruled out."},
		{offline.Placement{Height: 110, ProvenBound: 106}, 105, "", "FAILED: no placement of chat fits in 105 B."},
		{offline.Placement{Height: 110, ProvenBound: 105}, 105, "", "FAILED: no placement of chat in 105 B was found; the " +
			"lowest takes 110 B."},
		{
			offline.Placement{Height: 100, Optimal: true, ProvenBound: 100}, 0, "it has no history",
			"Only a part of the run is in chat: it has no history. " + known + "that part fits in 100 B, its lower bound: no " +
				"placement is lower.",
		},
	} {
		var b strings.Builder
		require.NoError(t, report.OfflineTables(&b, &offline.Report{
			Limits: offline.Limits{Capacity: c.capacity},
			Traces: []*offline.Summary{{Trace: "chat", LowerBound: 100, Best: c.best, Gap: c.lacks}},
		}))
		first, _, _ := strings.Cut(b.String(), "\n")
		require.Equal(t, c.want, first)
	}
}
