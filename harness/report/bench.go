package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/vramyard/vramyard/harness/bench"
	"github.com/vramyard/vramyard/harness/clock"
)

// BenchTables writes a table for each workload of a benchmark: the empty loop, then the
// strategies, time and memory side by side.
func BenchTables(w io.Writer, r *bench.Report) error {
	if err := deviceLine(w, r.Device); err != nil {
		return err
	}
	timedBy := "CPU time of the thread"
	if r.Clock == clock.Wall {
		timedBy = "time of the wall"
	}
	cpu := ""
	if r.Machine.CPU != "" {
		cpu = ", " + Printable(r.Machine.CPU)
	}
	fmt.Fprintf(w, "%d interleaved rounds; clock: %s; %s on %s/%s, %d CPUs%s\n", r.Rounds, timedBy,
		r.Machine.Go, r.Machine.OS, r.Machine.Arch, r.Machine.CPUs, cpu)
	each := len(r.Runs) / max(len(r.Loops), 1)
	for i, l := range r.Loops {
		if err := benchTable(w, l, r.Runs[i*each:(i+1)*each]); err != nil {
			return err
		}
	}
	return nil
}

// benchTable writes the table of one workload.
func benchTable(w io.Writer, l bench.Loop, runs []bench.Run) error {
	t := NewTable("strategy", "ns/pair", "min", "spread", "ratio", "p50", "p99", "p99.9", "max",
		"address", "reserved", "arena", "metadata B", "heap B", "allocs")
	const columns = 15
	rightAlign(t, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, columns)
	loop := append(table.Row{"(empty loop)"}, timingCells(l.Timing)...)
	for len(loop) < columns {
		loop = append(loop, none)
	}
	t.AppendRow(loop)
	t.AppendSeparator()
	for _, r := range runs {
		t.AppendRow(benchRow(r))
	}
	note := ""
	if slices.ContainsFunc(runs, func(r bench.Run) bool { return r.Named }) {
		note = "* is handed its own name of a block to free; the others find it by address\n"
	}
	name := l.Workload
	if p := l.Params; p.Most != 0 {
		name += fmt.Sprintf(":%v-%v", p.Least, p.Most)
	}
	_, err := fmt.Fprintf(w, "\n%s: %d blocks live, %s at most; %d pairs timed, seed %d; device of %s\n%s\n%s",
		name, l.Live, Bytes(l.PeakLive), l.Pairs, l.Params.Seed, Bytes(l.Device), t.Render(), note)
	return err
}

// timingCells returns the cells of the times of all rounds.
func timingCells(t bench.Timing) []any {
	return []any{fixed(t.Median, 1), fixed(t.Min, 1), Percent(t.Spread())}
}

// benchRow returns the cells of one strategy.
func benchRow(r bench.Run) table.Row {
	reserved := fixed(r.ReservedRatio, 3)
	if r.Preallocates {
		reserved = "all"
	}
	name := r.Strategy
	if r.Named {
		name += " *"
	}
	row := append(table.Row{name}, timingCells(r.Timing)...)
	q := r.Latency
	return append(row, fixed(r.Ratio, 2), q.P50, q.P99, q.P999, q.Max, fixed(r.AddressRatio, 3), reserved,
		optional(r.ArenaRatio, 3), optional(r.MetadataPerBlock, 1), fixed(r.HeapPerBlock, 1), allocs(r.MallocsPerPair))
}

// fixed returns x with so many decimals.
func fixed(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// optional returns the same of a figure that may not exist.
func optional(x *float64, decimals int) string {
	if x == nil {
		return none
	}
	return fixed(*x, decimals)
}

// allocs returns a number of allocations; what is not zero never looks like it.
func allocs(x float64) string { return strconv.FormatFloat(x, 'g', 2, 64) }
