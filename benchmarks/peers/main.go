// Command peers times public allocators beside the strategies of this repository: the same
// operations, in the same process, in the same interleaved rounds. It prints the tables of
// vramyard bench.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/benchmarks/peers/memutils"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/strategies"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// beside are the peers, which follow the strategies in each table.
var beside = []string{"memutils", "memutils:mintime", "memutils:minmemory"}

func run(args []string, stdout io.Writer) error {
	fl := flag.NewFlagSet("peers", flag.ContinueOnError)
	fl.SetOutput(io.Discard) // an error is one line; help is printed below
	ours := fl.String("strategies", "tlsf,bfc,bestfit", "strategies to time, separated by `commas`; "+
		"ratios are to the first")
	chosen := bench.Selection{Steps: 300, Seed: 42}
	fl.StringVar(&chosen.Workloads, "workloads", "w1", "workloads, separated by `commas`")
	fl.StringVar(&chosen.Live, "live", "1000,10000,100000", "numbers of live blocks, separated by `commas`")
	fl.IntVar(&chosen.Pairs, "pairs", 1_000_000, "pairs that are timed in each run, but for w2")
	rounds := fl.Int("rounds", 9, "interleaved runs of each allocator")
	file := fl.String("json", "", "also write all figures as JSON to this `file`, \"-\" for standard output instead "+
		"of tables")
	if err := fl.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fl.SetOutput(stdout)
			fl.Usage()
			return nil
		}
		return err
	}
	if fl.NArg() > 0 {
		return fmt.Errorf("unexpected %q", fl.Arg(0))
	}
	setups, err := lookup(*ours)
	if err != nil {
		return err
	}
	workloads, err := chosen.Resolve()
	if err != nil {
		return err
	}
	r, err := bench.Measure(context.Background(), workloads, setups, bench.Options{Rounds: *rounds})
	if err != nil {
		return err
	}
	return write(r, *file, stdout)
}

// lookup returns the strategies with the given names, and the peers behind them.
func lookup(ours string) (all []setting.Setup, err error) {
	catalogue := append(strategies.All(), memutils.Spec())
	for _, name := range append(strings.Split(ours, ","), beside...) {
		s, err := catalogue.Lookup(strings.TrimSpace(name), nil)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// write writes the report as tables, as JSON to a file, or both.
func write(r *bench.Report, file string, stdout io.Writer) error {
	if file != "-" {
		if err := report.BenchTables(stdout, r); err != nil || file == "" {
			return err
		}
	}
	return fileio.Write(file, stdout, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	})
}
