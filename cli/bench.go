package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/fileio"
)

type benchFlags struct {
	catalogue  setting.Catalogue
	strategies string
	chosen     bench.Selection
	rounds     int
	threads    string
	capacity   string
	deviceFlags
	arena bool
	files outputs
}

func newBench(catalogue setting.Catalogue) *cobra.Command {
	f := benchFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Time strategies on reference workloads",
		Long: `Time a pair of a free and an allocation in each strategy on the reference workloads of
docs/workloads.md. A table for each workload shows times with ratios to the first strategy,
latencies of single operations in nanoseconds, and memory. docs/metrics.md defines each figure.

Rounds are interleaved, so that other load on the machine affects all strategies alike; compare
ratios within one table only. All times include the empty loop. A refused request ends the
benchmark.`,
		Example: "  vramyard bench --strategies tlsf,bfc --workloads w1 --live 1000,100000\n" +
			"  vramyard bench --strategies tlsf,buddy --workloads loguniform:16KiB-1MiB\n" +
			"  vramyard bench --strategies buddy --workloads w3 --cpuprofile buddy.pprof",
		Args: cobra.NoArgs,
		RunE: f.run,
	}
	usual := workload.All()[0].Default
	fl := c.Flags()
	fl.StringVar(&f.strategies, "strategies", strings.Join(catalogue.Default(setting.Timed), ","),
		"strategies to time, "+namedUsage)
	fl.StringVar(&f.chosen.Workloads, "workloads", "w1,w2,w3", "workloads, separated by commas, out of "+
		strings.Join(workload.Names(), ",")+
		"; loguniform and uniform may have their sizes behind them, as in loguniform:16KiB-1MiB")
	fl.StringVar(&f.chosen.Live, "live", "1000,10000", "numbers of live blocks, for workloads with this parameter")
	fl.IntVar(&f.rounds, "rounds", 9, "interleaved runs of each strategy")
	fl.StringVar(&f.threads, "threads", "", "also time this many goroutines, such as 1,2,4: behind one mutex, in "+
		"shards, and with the strategy's own locks")
	fl.IntVar(&f.chosen.Pairs, "pairs", usual.Pairs, "timed pairs of a free and an allocation in each "+
		"run; w2 has --steps instead")
	fl.IntVar(&f.chosen.Steps, "steps", 300, "training steps of w2")
	fl.Uint64Var(&f.chosen.Seed, "seed", usual.Seed, "seed of the random numbers")
	fl.StringVar(&f.capacity, "capacity", "", "capacity of the device (default: from --device, or four times the "+
		"live bytes, up to the next GiB)")
	f.addPlace(c, "the smallest arena is searched on smaller devices with the same settings")
	fl.BoolVar(&f.arena, "arena", false, "search the smallest arena of each strategy too, which takes a dozen runs")
	f.files.addFigures(c, "tables")
	f.files.add(c, "cpuprofile",
		`write a CPU profile to this file, for "go tool pprof"; its samples are labelled by strategy, workload and live`)
	f.files.addHTML(c)
	return c
}

func (f *benchFlags) run(cmd *cobra.Command, _ []string) error {
	if err := f.judge(); err != nil {
		return err
	}
	setups, err := lookupAll(f.catalogue, f.strategies, "")
	if err != nil {
		return err
	}
	workloads, err := f.chosen.Resolve()
	if wrong, ok := errors.AsType[*bench.SelectionError](err); ok {
		return flagError(wrong.Part, wrong.Why)
	}
	o := bench.Options{Rounds: f.rounds, Arena: f.arena}
	if o.Device, o.Capacity, err = f.placed(); err != nil {
		return err
	}
	if f.threads != "" {
		o.Threads, err = bench.ParseThreads(f.threads)
		if wrong, ok := errors.AsType[*bench.SelectionError](err); ok {
			return flagError(wrong.Part, wrong.Why)
		}
		if o.Device.GPU != nil {
			return flagError("threads", errors.New("want a simulated device: a GPU serves one thread here"))
		}
	}
	if f.capacity != "" {
		if o.Capacity, err = parseCapacity(f.capacity); err != nil {
			return err
		}
	}
	var r *bench.Report
	err = f.profiled(func() error {
		// A progress line that redraws itself would disturb the timings.
		p := begin(cmd, stage{unit: "runs", quiet: true})
		o.Progress, o.Share = func(done, known int) { p.reached(int64(done), int64(known)) }, p.estimated
		ctx, done := untilInterrupt(cmd)
		defer done()
		r, err = bench.Measure(ctx, workloads, setups, o)
		return err
	})
	stdout := cmd.OutOrStdout()
	show := func(w io.Writer) error { return report.BenchTables(w, r) }
	if errors.Is(err, context.Canceled) && r != nil && len(r.Loops) > 0 {
		return f.files.finished(stdout, fmt.Sprintf("%d of %d workloads are finished", len(r.Loops), len(workloads)), show)
	}
	if r == nil || errors.Is(err, context.Canceled) {
		return err
	}
	f.files.figures(r, report.BenchTable(r))
	f.files.page(cmd, nil, func() (*page.Report, error) { return benchPage(r, colors(f.catalogue)), nil })
	return errors.Join(err, f.files.write(stdout, show))
}

func benchPage(r *bench.Report, color func(string) int) *page.Report {
	number := map[string]int{}
	var calls []page.Calls
	for i := range r.Runs {
		number[r.Runs[i].Strategy] = color(r.Runs[i].Strategy)
		calls = append(calls, page.Calls{Alloc: r.Runs[i].Latency.AllocCalls, Free: r.Runs[i].Latency.FreeCalls})
	}
	return &page.Report{
		Kind: "bench", Title: "Strategies timed", Sheets: append(report.BenchSheets(r), report.ThreadSheets(r)...),
		Facts: []page.Fact{
			{Name: "Go", Value: r.Machine.Go}, {Name: "system", Value: r.Machine.OS + "/" + r.Machine.Arch},
			{Name: "processor", Value: r.Machine.CPU}, {Name: "rounds", Value: strconv.Itoa(r.Rounds)},
		},
		Calls: calls,
		More:  map[string]any{"bench": r, "colors": number},
	}
}

// judge checks the flags.
func (f *benchFlags) judge() error {
	if f.rounds < 1 {
		return flagError("rounds", errNone)
	}
	profile := f.files.of("cpuprofile").path
	switch ext := strings.ToLower(filepath.Ext(profile)); {
	case profile == "-":
		return flagError("cpuprofile", errors.New("a profile is binary: want the name of a file"))
	case ext == ".gz" || ext == ".zst":
		return flagError("cpuprofile", errors.New("a profile is compressed anyway: want a name that does not end in "+
			".gz or .zst"))
	}
	return f.files.check()
}

// profiled calls measure, with a CPU profile if --profile is given.
func (f *benchFlags) profiled(measure func() error) error {
	if !f.files.wanted("cpuprofile") {
		return measure()
	}
	return fileio.Write(f.files.of("cpuprofile").path, nil, func(w io.Writer) error {
		if err := pprof.StartCPUProfile(w); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		return measure()
	})
}
