package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// BenchTables writes a table for each workload of a benchmark: the empty loop, then the
// strategies, time and memory side by side.
func BenchTables(w io.Writer, r *bench.Report) error {
	if err := placeLine(w, r.Device); err != nil {
		return err
	}
	timedBy := "CPU time of the thread"
	if r.Clock == replay.Wall {
		timedBy = "time of the wall"
	}
	cpu := ""
	if r.Machine.CPU != "" {
		cpu = ", " + units.Printable(r.Machine.CPU)
	}
	_, err := fmt.Fprintf(w, "%d interleaved rounds; clock: %s; %s on %s/%s, %d CPUs%s\n", r.Rounds, timedBy,
		r.Machine.Go, r.Machine.OS, r.Machine.Arch, r.Machine.CPUs, cpu)
	if err != nil {
		return err
	}
	style := StyleOf(w)
	for i, s := range BenchSheets(r) {
		note := ""
		for _, n := range s.Notes {
			note += n + "\n"
		}
		l := r.Loops[i]
		verdict := benchVerdict(style, fmt.Sprintf("%s with %d blocks", workloadName(l), l.Live), runsOn(r, i))
		if _, err := fmt.Fprintf(w, "\n%s\n\n%s\n%s\n%s", verdict, s.Title, s.Terminal(w, 1), note); err != nil {
			return err
		}
	}
	return nil
}

// benchRow is a run of a benchmark with the figures that all runs have in common.
type benchRow struct {
	*bench.Run
	Rounds  int           `json:"rounds"`
	Clock   string        `json:"clock"`
	Machine bench.Machine `json:"machine"`
	Version string        `json:"version"`
}

// BenchTable returns the runs of a benchmark for programs that analyse them, one row for each.
func BenchTable(r *bench.Report) *flat.Table {
	rows := make([]benchRow, len(r.Runs))
	for i := range rows {
		rows[i] = benchRow{&r.Runs[i], r.Rounds, r.Clock, r.Machine, r.Version}
	}
	return flat.Of(rows)
}

// benchColumns are the columns of a benchmark. The row above all others is the empty loop, which has times alone.
var benchColumns = []ColumnOf[bench.Run]{
	{
		Column: Column{Name: "strategy", Meaning: "name and preset"},
		Cell:   func(r bench.Run) Cell { return words(r.Strategy + benchMarks(r)) },
		Top:    func(bench.Run) Cell { return words("(empty loop)") },
	},
	{Column: Column{"ns/pair", "CPU time of a free and an allocation, nanoseconds: the median of the rounds", true}, Cell: benchMedian, Top: benchMedian},
	{Column: Column{"min", "likewise, the least of the rounds", true}, Cell: benchLeast, Top: benchLeast},
	{Column: Column{"spread", "the longest round less the shortest, of their median", true}, Cell: benchSpread, Top: benchSpread},
	benchFixed("ratio", "median of the ratios to the first strategy, round by round", 2, func(r bench.Run) float64 { return r.Ratio }),
	benchFixed("p50", "half of the single operations took no longer, nanoseconds", 0, func(r bench.Run) float64 { return float64(r.Latency.P50) }),
	benchFixed("p99", "99 % took no longer, nanoseconds", 0, func(r bench.Run) float64 { return float64(r.Latency.P99) }),
	benchFixed("p99.9", "99.9 % took no longer, nanoseconds", 0, func(r bench.Run) float64 { return float64(r.Latency.P999) }),
	benchFixed("max", "the longest, nanoseconds", 0, func(r bench.Run) float64 { return float64(r.Latency.Max) }),
	benchFixed("address", "addresses used, in peaks of live bytes", 3, func(r bench.Run) float64 { return r.AddressRatio }),
	{
		Column: Column{"reserved", "most bytes held from the device, in peaks of live bytes", true},
		Cell: func(r bench.Run) Cell {
			c := fixedCell(r.ReservedRatio, 3)
			if r.Preallocates {
				c.Text = "all"
			}
			return c
		},
	},
	{
		Column: Column{"arena", "the smallest device, in peaks of live bytes", true},
		Cell:   func(r bench.Run) Cell { return optional(r.ArenaRatio, 3) },
	},
	{
		Column: Column{"metadata B", "host memory of the strategy for each live block, bytes", true},
		Cell:   func(r bench.Run) Cell { return optional(r.MetadataPerBlock, 1) },
	},
	benchFixed("heap B", "growth of the heap for each live block, bytes", 1, func(r bench.Run) float64 { return r.HeapPerBlock }),
	{
		Column: Column{"allocs", "objects taken from the heap for each pair", true},
		Cell:   func(r bench.Run) Cell { return number(allocs(r.MallocsPerPair), r.MallocsPerPair) },
	},
}

func benchMedian(r bench.Run) Cell { return fixedCell(r.Median, 1) }
func benchLeast(r bench.Run) Cell  { return fixedCell(r.Min, 1) }
func benchSpread(r bench.Run) Cell { return percentCell(r.Spread()) }

// benchFixed returns a column of a figure with so many decimals.
func benchFixed(name, meaning string, decimals int, figure func(bench.Run) float64) ColumnOf[bench.Run] {
	return ColumnOf[bench.Run]{
		Column: Column{name, meaning, true},
		Cell:   func(r bench.Run) Cell { return fixedCell(figure(r), decimals) },
	}
}

// benchMarks returns the marks behind the name of a strategy, which notes below the table explain.
func benchMarks(r bench.Run) (marks string) {
	if r.Named {
		marks = " *"
	}
	if r.SelfTimed {
		marks += " †"
	}
	return marks
}

// workloadName returns the name of a workload as --workloads takes it.
func workloadName(l bench.Loop) string {
	if p := l.Params; p.Most != 0 {
		return l.Workload + fmt.Sprintf(":%v-%v", p.Least, p.Most)
	}
	return l.Workload
}

// runsOn returns the runs on a workload.
func runsOn(r *bench.Report, i int) []bench.Run {
	each := len(r.Runs) / max(len(r.Loops), 1)
	return r.Runs[i*each : (i+1)*each]
}

// benchSheet returns the table of one workload: the empty loop, then the strategies.
func benchSheet(l bench.Loop, runs []bench.Run) Sheet {
	name := workloadName(l)
	title := fmt.Sprintf("%s: %d blocks live, %s at most; %d pairs timed, seed %d; device of %s",
		name, l.Live, units.Bytes(l.PeakLive), l.Pairs, l.Params.Seed, units.Bytes(l.Device))
	s := sheetBelow(bench.Run{Timing: l.Timing}, NewSheet(title, benchColumns, runs), benchColumns)
	if slices.ContainsFunc(runs, func(r bench.Run) bool { return r.Named }) {
		s.Notes = append(s.Notes, "* is handed its own name of a block to free; the others find it by address")
	}
	if slices.ContainsFunc(runs, func(r bench.Run) bool { return r.SelfTimed }) {
		s.Notes = append(s.Notes, "† is timed in its own process, by the clock of the wall, without the way there and what the device took")
	}
	return s
}

// fixedCell returns a cell with so many decimals.
func fixedCell(x float64, decimals int) Cell { return number(units.Fixed(x, decimals), x) }

// optional returns the same of a figure that may not exist.
func optional(x *float64, decimals int) Cell {
	if x == nil {
		return lacking()
	}
	return fixedCell(*x, decimals)
}

// allocs returns a number of allocations; what is not zero never looks like it.
func allocs(x float64) string { return strconv.FormatFloat(x, 'g', 2, 64) }
