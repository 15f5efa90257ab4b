package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/stats"
)

type statsFlags struct {
	a, b   string
	device string // empty: all
	search string // empty: all
	o      stats.Options
	memory device.Size
	files  outputs
}

func newStats() *cobra.Command {
	var f statsFlags
	c := &cobra.Command{
		Use:   "stats A.parquet [B.parquet]",
		Short: "Compare two strategies over many traces, with intervals",
		Long: `Compare two strategies, or two versions of one, over many traces. The tables are written by
--parquet of compare, or by sweep merge; one table may hold both sides.

Runs are paired by the hash of the trace, and by the columns device and search if both tables have
them. For each figure, less is better: the minimum capacity, the reserved peak, the device calls
and their time. The output has the number of traces on which each side wins, the geometric mean of
the ratios B / A with a 95 % interval (bootstrap, at least 6 traces), the median, the extremes, and
the p-value of a sign test. In the minimum capacity a run that failed loses to one that completed;
the other figures are compared where both complete. Failures and runs without a partner are listed.`,
		Example: `  vramyard compare --strategies bfc,tlsf --parquet results.parquet
  vramyard stats --a bfc --b tlsf results.parquet`,
		Args: cobra.RangeArgs(1, 2),
		RunE: f.run,
	}
	c.Flags().StringVar(&f.a, "a", "", "strategy of A, as in the table (default: the only or first one)")
	c.Flags().StringVar(&f.b, "b", "", "strategy of B, as in the table (default: the only or second one, or as A)")
	c.Flags().StringVar(&f.device, "device", "", "only the runs on this device, as in the table (default: all)")
	c.Flags().StringVar(&f.search, "search", "", "only the runs with this search, as in the table (default: all)")
	c.Flags().Uint64Var(&f.o.Seed, "seed", 0, "seed of the bootstrap")
	c.Flags().BoolVar(&f.o.Time, "time", false, "also compare the measured time of an operation")
	addMemory(c, &f.memory)
	f.files.addFigures(c, "the text")
	table := c.Flags().Lookup("csv")
	table.Usage = strings.Replace(table.Usage, "each run", "each figure", 1)
	return c
}

func (f *statsFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.files.check(args...); err != nil {
		return err
	}
	var tables []stats.Table
	for _, path := range args {
		rows, err := readTable(path, f.memory, stats.Read)
		if err != nil {
			return err
		}
		tables = append(tables, stats.Table{File: path, Rows: rows})
	}
	if err := stats.Select(tables, f.device, f.search); err != nil {
		return err
	}
	a, b, err := stats.Pick(tables, f.a, f.b)
	if err != nil {
		return err
	}
	r, err := stats.Compare(a, b, f.o)
	if err != nil {
		return err
	}
	f.files.figures(r, report.StatsTable(r))
	return f.files.write(cmd.OutOrStdout(), func(w io.Writer) error { return report.Stats(w, r) })
}
