package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// BenchTables writes a table for each workload of a benchmark: the empty loop first, then the
// strategies, with time and memory.
func BenchTables(w io.Writer, r *bench.Report) error {
	out := &lines{w: w}
	out.target(r.Device)
	timedBy := "CPU time of the thread"
	if r.Clock == replay.Wall {
		timedBy = "wall-clock time"
	}
	cpu := ""
	if r.Machine.CPU != "" {
		cpu = ", " + units.Printable(r.Machine.CPU)
	}
	out.printf("%d interleaved rounds; clock: %s; %s on %s/%s, %d CPUs%s\n", r.Rounds, timedBy,
		r.Machine.Go, r.Machine.OS, r.Machine.Arch, r.Machine.CPUs, cpu)
	for i, s := range BenchSheets(r) {
		workload := fmt.Sprintf("%s with %d blocks", workloadName(r.Loops[i]), r.Loops[i].Live)
		out.printf("\n%s\n\n", benchVerdict(StyleOf(w), workload, runsOn(r, i)))
		out.sheet(&s, 1)
	}
	for _, s := range ThreadSheets(r) {
		out.printf("\n")
		out.sheet(&s, 0)
	}
	return out.err
}

// threadColumns are the columns for several threads.
var threadColumns = []ColumnOf[bench.ThreadRun]{
	Texts("strategy", "name and preset", func(r bench.ThreadRun) string { return r.Strategy }),
	fixed("threads", "goroutines that call the strategy at once", 0, func(r bench.ThreadRun) float64 {
		return float64(r.Threads)
	}),
	Texts("locks", "none, one mutex, shards with a mutex for each thread, or the strategy's own",
		func(r bench.ThreadRun) string { return string(r.Locking) }),
	fixed("ns/pair", "wall-clock time of all pairs / pairs, nanoseconds: the median of the rounds", 1,
		func(r bench.ThreadRun) float64 { return r.Median }),
	fixed("min", "the same in the fastest round", 1, func(r bench.ThreadRun) float64 { return r.Min }),
	figures("spread", "(longest round - shortest round) / median round", func(r bench.ThreadRun) Cell {
		return percentCell(r.Spread())
	}),
	figures("× mutex", "median / median behind one mutex with as many threads", func(r bench.ThreadRun) Cell {
		return ratioOf(r.Ratio)
	}),
	fixed("reserved", "peak reserved bytes / peak live bytes", 3, func(r bench.ThreadRun) float64 {
		return r.ReservedRatio
	}),
	figures("metadata B", "host memory of the strategy for each live block, bytes", func(r bench.ThreadRun) Cell {
		return optional(r.MetadataPerBlock, func(x float64) Cell { return fixedCell(x, 1) })
	}),
}

// ThreadSheets returns a table for each workload with several threads.
func ThreadSheets(r *bench.Report) (all []Sheet) {
	each := len(r.Threads) / max(len(r.Loops), 1)
	for i, l := range r.Loops {
		if runs := r.Threads[i*each : (i+1)*each]; len(runs) > 0 {
			title := fmt.Sprintf("%s by several threads: each has its share of the blocks and pairs, %d CPUs",
				workloadName(l), r.Machine.CPUs)
			all = append(all, NewSheet(title, threadColumns, runs))
		}
	}
	return all
}

// benchRow is a run of a benchmark with the figures common to all runs.
type benchRow struct {
	*bench.Run
	Rounds     int              `json:"rounds"`
	Clock      string           `json:"clock"`
	Machine    bench.Machine    `json:"machine"`
	Provenance provenance.Build `json:"provenance"`
}

// BenchTable returns the runs of a benchmark as a flat table.
func BenchTable(r *bench.Report) *flat.Table {
	rows := make([]benchRow, len(r.Runs))
	for i := range rows {
		rows[i] = benchRow{&r.Runs[i], r.Rounds, r.Clock, r.Machine, r.Provenance}
	}
	return flat.Of(rows)
}

// benchColumns are the columns of a benchmark. The top row is the empty loop, which has times only.
var benchColumns = []ColumnOf[bench.Run]{
	Texts("strategy", "name and preset", func(r bench.Run) string { return r.Strategy + benchFootnotes(r) }).
		top(func(bench.Run) Cell { return textCell("(empty loop)") }),
	figures("ns/pair", "CPU time of a free and an allocation, nanoseconds: the median of the rounds", benchMedian).top(
		benchMedian),
	figures(byRef, "the same with frees by reference, if the strategy supports them", func(r bench.Run) Cell {
		return optional(r.ByRef, func(t bench.Timing) Cell { return fixedCell(t.Median, 1) })
	}),
	figures("min", "the same in the fastest round", benchMin).top(benchMin),
	figures("spread", "(longest round - shortest round) / median round", benchSpread).top(benchSpread),
	fixed("ratio", "median of the ratios to the first strategy, round by round", 2, func(r bench.Run) float64 {
		return r.Ratio
	}),
	fixed("p50", "median time of a single operation, nanoseconds", 0, func(r bench.Run) float64 {
		return float64(r.Latency.P50)
	}),
	fixed("p99", "99th percentile of the same, nanoseconds", 0, func(r bench.Run) float64 {
		return float64(r.Latency.P99)
	}),
	fixed("p99.9", "99.9th percentile of the same, nanoseconds", 0, func(r bench.Run) float64 {
		return float64(r.Latency.P999)
	}),
	fixed("max", "the longest single operation, nanoseconds", 0, func(r bench.Run) float64 {
		return float64(r.Latency.Max)
	}),
	fixed("address", "addresses used / peak live bytes", 3, func(r bench.Run) float64 { return r.AddressRatio }),
	figures("reserved", "peak reserved bytes / peak live bytes", func(r bench.Run) Cell {
		c := fixedCell(r.ReservedRatio, 3)
		if r.Preallocates {
			c.Text = "all"
		}
		return c
	}),
	figures("arena", "smallest device / peak live bytes", func(r bench.Run) Cell {
		return ratioOf(r.ArenaRatio)
	}),
	figures("metadata B", "host memory of the strategy for each live block, bytes", func(r bench.Run) Cell {
		return optional(r.MetadataPerBlock, func(x float64) Cell { return fixedCell(x, 1) })
	}),
	fixed("heap B", "growth of the Go heap for each live block, bytes", 1, func(r bench.Run) float64 {
		return r.HeapPerBlock
	}),
	// Two digits, so that a non-zero figure never looks like zero.
	figures("allocs", "heap objects allocated for each pair", func(r bench.Run) Cell {
		return number(strconv.FormatFloat(r.MallocsPerPair, 'g', 2, 64), r.MallocsPerPair)
	}),
}

func benchMedian(r bench.Run) Cell { return fixedCell(r.Median, 1) }
func benchMin(r bench.Run) Cell    { return fixedCell(r.Min, 1) }
func benchSpread(r bench.Run) Cell { return percentCell(r.Spread()) }

// benchFootnotes returns the footnote marks of a strategy.
func benchFootnotes(r bench.Run) (marks string) {
	if r.Named {
		marks = " *"
	}
	if r.SelfTimed {
		marks += " †"
	}
	return marks
}

// workloadName returns the name of a workload as in --workloads.
func workloadName(l bench.Loop) string {
	if p := l.Params; p.Most != 0 {
		return l.Workload + fmt.Sprintf(":%v-%v", p.Least, p.Most)
	}
	return l.Workload
}

func runsOn(r *bench.Report, i int) []bench.Run {
	each := len(r.Runs) / max(len(r.Loops), 1)
	return r.Runs[i*each : (i+1)*each]
}

// benchSheet returns the table of a workload: the empty loop, then the strategies.
func benchSheet(l bench.Loop, runs []bench.Run) Sheet {
	title := fmt.Sprintf("%s: %d blocks live, %s at most; %d pairs timed, seed %d; device of %s",
		workloadName(l), l.Live, units.Bytes(l.PeakLive), l.Pairs, l.Params.Seed, units.Bytes(l.Device))
	columns := benchColumns
	if !slices.ContainsFunc(runs, func(r bench.Run) bool { return r.ByRef != nil }) {
		columns = without(columns, byRef)
	}
	s := sheetWithTop(bench.Run{Timing: l.Timing}, title, columns, runs)
	if slices.ContainsFunc(runs, func(r bench.Run) bool { return r.Named }) {
		s.Notes = append(s.Notes, "* frees by its own handle of the block; the others look the block up by address")
	}
	if slices.ContainsFunc(runs, func(r bench.Run) bool { return r.SelfTimed }) {
		s.Notes = append(s.Notes, "† is timed in its own process by wall clock, without the round trip to it and the "+
			"time of the device")
	}
	return s
}
