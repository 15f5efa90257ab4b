package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/units"
)

type compareFlags struct {
	catalogue  setting.Catalogue
	strategies string
	config     string
	capacity   string
	deviceFlags
	source formats.Options
	files  outputs
	freeAt string
	learn  string // path of the training trace; "" for none
	store  storeFlag
}

func newCompare(catalogue setting.Catalogue) *cobra.Command {
	f := compareFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "compare [TRACE...]",
		Short: "Compare the memory and time of strategies on traces",
		Long: `Replay each trace through each strategy on a simulated GPU and print a table for
each trace, sorted by minimum capacity: the smallest device on which the trace completes.

A TRACE is a file of any format in docs/traces.md, "-" for standard input, or the name
of a trace inside the program. Without TRACE, all traces inside the program are used.

All figures except the minimum capacity are measured on one device. Its capacity is --capacity,
else the capacity of --device, else the recorded card's if the file has it, else ample. For a
recording of PyTorch a row "caching, as recorded" is added if no compared strategy has its
settings.

With --learn, strategies that plan ahead get the calls of an earlier run before each replay. The
result has the hash of that trace and names the strategies. It is an error if none of them plans.`,
		Example: "  vramyard compare --device sim:rtx4090-24g --strategies bfc,tlsf trace.csv\n" +
			`  vramyard compare --strategies 'caching,caching{"conf":"max_split_size_mb:128"}' trace.csv`,
		RunE: f.run,
	}
	c.Flags().StringVar(&f.strategies, "strategies", strings.Join(catalogue.Default(setting.Compared), ","),
		"strategies to compare, "+namedUsage)
	addConfig(c, &f.config, "settings of the one strategy named, as a JSON object; they "+
		"replace the preset's")
	c.Flags().StringVar(&f.capacity, "capacity", "",
		`measure on a device of this size, such as "24GiB" (default: the size of --device, of the recorded card, or ample)`)
	addPart(c, &f.source)
	f.addPlace(c, "figures are measured at its capacity; the minimum capacity is searched regardless")
	f.addSim(c, simShapeUsage)
	addFreeAt(c, &f.freeAt)
	c.Flags().StringVar(&f.learn, "learn", "",
		`trace of an earlier run, such as "train.csv", for the strategies that plan ahead; any form that TRACE may have`)
	addStore(c, &f.store, "runs that are computed only once")
	f.files.addFigures(c, "tables")
	f.files.addHTML(c)
	return c
}

func (f *compareFlags) run(cmd *cobra.Command, args []string) error {
	inputs := args
	if f.learn != "" {
		inputs = append(slices.Clone(args), f.learn)
	}
	if err := f.files.check(inputs...); err != nil {
		return err
	}
	o := compare.Options{}
	var err error
	if o.Device, o.Capacity, err = f.placed(); err != nil {
		return err
	}
	if err := onlySimulated(o.Device, f.files.of("html")); err != nil {
		return err
	}
	if o.Cells, err = f.store.cells(cmd, o.Device); err != nil {
		return err
	}
	if o.FreeAt, err = parseFreeAt(f.freeAt); err != nil {
		return err
	}
	if f.capacity != "" {
		n, err := parseCapacity(f.capacity)
		if err != nil {
			return err
		}
		o.Capacity = n
	}
	setups, err := lookupAll(f.catalogue, f.strategies, f.config)
	if err != nil {
		return err
	}
	if setups, o.Training, err = f.learned(cmd, inputs, setups); err != nil {
		return flagError("learn", err)
	}
	of := &recordings{catalogue: f.catalogue, family: func(name string) bool { return hasStrategy(setups, name) }}
	if f.files.wanted("html") {
		of.allocationStacks = allocationStacks{}
	}
	traces, err := openAll(cmd, args, f.source, of.open)
	if err != nil {
		return err
	}
	o.Memory = heapLeft()
	total := 0
	for i, t := range traces {
		o.Origins = append(o.Origins, of.runs[t])
		if o.Device.GPU != nil {
			o.Origins[i].Card = 0 // it has a capacity of its own
		}
	}
	for i := range traces {
		total += len(o.Setups(i, setups))
	}
	p := begin(cmd, stage{unit: "runs", total: int64(total)})
	o.Share = p.estimated
	o.Replayed, o.Done = p.replayed, func(int, *compare.Run) { p.step() }
	ctx, done := untilInterrupt(cmd)
	r, err := compare.Compare(ctx, traces, setups, o)
	done()
	if r == nil {
		return err
	}
	f.files.figures(r, report.CompareTable(r))
	f.files.page(cmd, args, func() (*page.Report, error) {
		return f.draw(cmd, traces, of.allocationStacks, &o, setups, r)
	})
	return f.files.conclude(cmd, err, len(r.Runs) > 0, fmt.Sprintf("%d of %d runs are finished", len(r.Runs), total),
		func(w io.Writer) error { return report.CompareTables(w, r) })
}

// learned returns the setups with the forecast of --learn, if given.
func (f *compareFlags) learned(cmd *cobra.Command, inputs []string, setups []setting.Setup) ([]setting.Setup,
	*compare.Training, error) {
	if f.learn == "" {
		return setups, nil, nil
	}
	if err := onceFromStdin(inputs); err != nil {
		return nil, nil, err
	}
	t, err := openTrace(f.learn, reading(cmd, f.learn, f.source), cmd.InOrStdin())
	if err != nil {
		return nil, nil, err
	}
	setups, training, err := compare.Learn(t, setups)
	if errors.Is(err, compare.ErrNoPlanner) {
		err = noPlanner(f.catalogue)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.learn, err)
	}
	return setups, training, nil
}

// noPlanner returns the error for a trace to learn from without a strategy that plans ahead. It
// names the planners of the catalogue.
func noPlanner(c setting.Catalogue) error {
	var names []string
	for _, name := range c.Names() {
		if s, err := c.Lookup(name, nil); err == nil && compare.Plans(s) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%w, and this program has none that does: docs/extending.md says how to write one",
			compare.ErrNoPlanner)
	}
	return fmt.Errorf("%w: want one of %s", compare.ErrNoPlanner, strings.Join(names, ", "))
}

// draw makes the page of a comparison. Each run is drawn on the device that it was measured on.
func (f *compareFlags) draw(cmd *cobra.Command, traces []trace.Source, stacks allocationStacks,
	settings *compare.Options, setups []setting.Setup, r *compare.Report) (*page.Report, error) {
	color := colors(f.catalogue)
	p := &page.Report{Kind: "compare", Title: "Strategies compared", Sheets: report.CompareSheets(r)}
	o := page.Budget(len(r.Runs))
	o.FreeAt, o.Latency = r.FreeAt, true
	next := 0 // run of the report
	for i, t := range traces {
		setups := settings.Setups(i, setups)
		runs := make([]drawing, len(setups))
		for j, s := range setups {
			run := &r.Runs[next]
			next++
			on := r.Device.Config
			on.Capacity = run.Device
			runs[j] = drawing{setup: s.ForCapacity(run.Device), color: color(s.Name), device: on, figures: run}
			if !run.Starts {
				runs[j].missing = "does not start on " + units.Bytes(run.Device)
			}
		}
		prepared, err := replay.Prepare(cmd.Context(), t)
		if err != nil {
			return nil, err
		}
		drawn, err := draw(cmd, prepared, stacks[t], runs, o)
		if err != nil {
			return nil, err
		}
		if err := p.Add(drawn); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// hasStrategy reports whether a strategy is among setups, with any preset.
func hasStrategy(setups []setting.Setup, name string) bool {
	return slices.ContainsFunc(setups, func(s setting.Setup) bool {
		family, _, _ := strings.Cut(s.Name, ":")
		return family == name
	})
}

func parseCapacity(s string) (device.Size, error) {
	n, err := device.ParseCapacity(s)
	return n, flagError("capacity", err)
}

// opener is [openTrace] or [openSource].
type opener[S trace.Source] func(path string, o formats.Options, stdin io.Reader) (S, error)

// openAll opens the traces of the command line, or all recorded ones.
func openAll[S trace.Source](cmd *cobra.Command, args []string, o formats.Options, open opener[S]) ([]S, error) {
	if len(args) == 0 {
		args = workload.RecordingNames()
	}
	if err := onceFromStdin(args); err != nil {
		return nil, err
	}
	traces := make([]S, len(args))
	for i, a := range args {
		t, err := open(a, reading(cmd, a, o), cmd.InOrStdin())
		if err != nil {
			return nil, err
		}
		traces[i] = t
	}
	return traces, nil
}

// encodeJSON writes v, indented.
func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
