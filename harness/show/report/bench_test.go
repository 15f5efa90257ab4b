package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

func TestBenchTables(t *testing.T) {
	one := bench.Load{
		Workload: "w1", Params: workload.Params{Seed: 42}, Live: 10, Pairs: 100, PeakLive: 3 * device.MiB, Device: device.GiB,
	}
	other := one
	other.Workload, other.Params.Least, other.Params.Most = "uniform", 1, 16*device.KiB
	arena, metadata := 1.25, 48.25
	first := bench.Run{
		Strategy: "tlsf", Load: one, Preallocates: true, Timing: bench.Timing{Median: 50, Min: 40, Max: 60}, Ratio: 1,
		AddressRatio: 1.125, ReservedRatio: 9, ArenaRatio: &arena, MetadataPerBlock: &metadata, HeapPerBlock: 51,
		MallocsPerPair: .00002,
	}
	first.Latency.P50, first.Latency.Max = 31, 4096
	second := bench.Run{Strategy: "slab", Load: one, Timing: bench.Timing{Median: 75}, Ratio: 1.5, ReservedRatio: 2.5}
	third := first
	third.Load = other
	r := &bench.Report{
		Clock: replay.Wall, Rounds: 5, Machine: bench.Machine{Go: "go1", OS: "plan9", Arch: "arm", CPUs: 3, CPU: "a\x1bb"},
		Loops: []bench.Loop{{Load: one, Timing: bench.Timing{Median: 3}}, {Load: other}},
		Runs:  []bench.Run{first, second, third, second},
	}
	var b strings.Builder
	require.NoError(t, report.BenchTables(&b, r))
	for _, want := range []string{
		"5 interleaved rounds; clock: wall-clock time; go1 on plan9/arm, 3 CPUs, \"a\\x1bb\"\n",
		"\nw1: 10 blocks live, 3.00 MiB at most; 100 pairs timed, seed 42; device of 1.00 GiB\n",
		"\nuniform:1B-16KiB: 10 blocks",
		"│ (empty loop) │     3.0 │  0.0 │  0.0 % │     — │",
		"│ tlsf         │    50.0 │ 40.0 │ 40.0 % │  1.00 │  31 │   0 │     0 │ 4096 │   1.125 │     " +
			" all │ 1.250 │       48.2 │   51.0 │  2e-05 │",
		"│ slab         │    75.0 │  0.0 │  0.0 % │  1.50 │   0 │   0 │     0 │    0 │   0.000 │    " +
			"2.500 │     — │          — │    0.0 │      0 │",
	} {
		require.Contains(t, b.String(), want)
	}
	require.NotContains(t, b.String(), "name")
	r.Clock, r.Machine.CPU, r.Runs[1].Named = replay.ThreadCPU, "", true
	b.Reset()
	require.NoError(t, report.BenchTables(&b, r))
	require.Contains(t, b.String(), "clock: CPU time of the thread; go1 on plan9/arm, 3 CPUs\n")
	require.Contains(t, b.String(), "│ slab *       │    75.0 │")
	require.Equal(t, 1, strings.Count(b.String(), "* frees by its own handle of the block"), "below one table")
	require.NotContains(t, b.String(), "by ref.")
	r.Runs[0].ByRef = &bench.Timing{Median: 40}
	b.Reset()
	require.NoError(t, report.BenchTables(&b, r))
	require.Contains(t, b.String(), "│ tlsf         │    50.0 │    40.0 │ 40.0 │")
	require.Contains(t, b.String(), "│ slab *       │    75.0 │       — │")
	require.Equal(t, 1, strings.Count(b.String(), "by ref."), "in one table")
}
