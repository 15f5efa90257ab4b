package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/show/view"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/budget"
)

var errListAlone = errors.New("want no LOG and no other flag beside it")

type rematFlags struct {
	catalogue setting.Catalogue
	grid.Settings
	heuristics, strategies, ladders, budgets string
	megEngine, batch                         string
	listHeuristics                           bool
	workers                                  int
	memory                                   device.Size
	store                                    storeFlag
	files                                    outputs
}

func newRemat(catalogue setting.Catalogue) *cobra.Command {
	f := rematFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "remat LOG...",
		Short: "Simulate training under a memory budget with rematerialization (DTR)",
		Long: `Run the log of a training step under several memory budgets. When memory is short a tensor is evicted, and
recomputed when it is read. A heuristic selects the victims and a strategy places the tensors. For each log and
heuristic the table shows the smallest budget with which each strategy completes, and the overhead in time.

A LOG is a file in the form of DTR's authors or DTRLOG/1, or "-" for standard input; docs/remat.md
describes both. Budgets are fractions of the base peak: the peak of a run without a budget. The
strategy counting, which counts bytes without addresses, always runs: the difference to it is the cost of
fragmentation.

With --batch the question is how large a batch fits. Each LOG is BATCH=FILE: one program, recorded at two or more
batch sizes. Logs of other batch sizes are predicted from them, and budgets are sizes such as 11GiB.`,
		Example: `  vramyard remat unet.log.gz --heuristics eq,lru --strategies bfc,caching --budgets 0.3:0.9:0.1
  vramyard remat 4=vit-b4.log.gz 12=vit-b12.log.gz --batch 32:512 --budgets 11GiB --strategies bfc`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !f.listHeuristics:
				return cobra.MinimumNArgs(1)(cmd, args)
			case len(args) > 0 || cmd.Flags().NFlag() > 1:
				return flagError("list-heuristics", errListAlone)
			}
			return nil
		},
		RunE: f.run,
	}
	fl, usual := c.Flags(), grid.Usual()
	fl.StringVar(&f.heuristics, "heuristics", strings.Join(usual.Heuristics, ","),
		"heuristics that select the victim, separated by commas: "+
			strings.Join(heuristicNames(), ",")+"; with settings, as in eq:evict=drop/swap/cheaper or mge:size=2, "+
			"a slash between alternatives")
	fl.StringVar(&f.megEngine, "megengine", "", "behave as this release of MegEngine, except for flags that are given: "+
		strings.Join(releaseNames(), ", "))
	fl.BoolVar(&f.listHeuristics, "list-heuristics", false, "print the formula and source of each heuristic, and exit")
	fl.StringVar(&f.strategies, "strategies",
		strings.Join(append([]string{grid.Counting}, catalogue.Default(setting.Remat)...), ","),
		"strategies that place the tensors, "+namedUsage)
	fl.StringVar(&f.ladders, "ladders", strings.Join(usual.Ladders, ","), "actions after a failed request, separated by "+
		"commas: "+ladderWords())
	fl.StringVar(&f.budgets, "budgets", grid.UsualRatios,
		"budgets in base peaks, separated by commas, or as FROM:TO:STEP; "+
			"with --batch sizes, as in 11GiB,24GiB")
	fl.StringVar(&f.batch, "batch", "", "find the largest batch size that completes, in a range FROM:TO or FROM:TO:STEP, "+
		"as in 32:512:8")
	f.addSettings(fl, usual.Settings)
	fl.IntVar(&f.workers, "workers", 0, "runs at once; 0 for one on each core")
	addStore(c, &f.store, "runs that are computed only once")
	f.files.addFigures(c, "tables")
	addMemory(c, &f.memory)
	f.files.addHTML(c)
	return c
}

// addSettings adds the flags that apply to all runs.
func (f *rematFlags) addSettings(fl *pflag.FlagSet, usual grid.Settings) {
	fl.Float64Var(&f.Limit, "limit", usual.Limit,
		"fail a run slower than this many times its compute time (defragmentation "+
			"excluded)")
	fl.StringVar(&f.Liveness, "liveness", usual.Liveness, "treatment of unreferenced tensors: "+
		strings.Join(remat.Livenesses(), ", "))
	fl.StringVar(&f.Trigger, "trigger", usual.Trigger, "when tensors are evicted: "+
		strings.Join(remat.Triggers(), ", ")+
		"; optionally with a fraction of the budget as bound, as in threshold:0.9")
	fl.StringVar(&f.Defrag, "defrag", usual.Defrag, "how blocks are moved: "+
		strings.Join(remat.DefragKinds(), ", "))
	fl.StringVar(&f.Sampling, "sampling", usual.Sampling, "candidates of a heuristic: none (all), stride, mge, or "+
		"a number of random ones")
	fl.StringVar(&f.MinEvictee, "min-evictee", "",
		`never evict tensors up to this size, such as "1MiB", or "1%" of the mean; with ",cut" after a size as in MegEngine`)
	fl.StringVar(&f.ParentOrder, "parent-order", usual.ParentOrder, "order in which missing inputs are recomputed: "+
		strings.Join(grid.ParentOrders(), ", "))
	fl.BoolVar(&f.EagerInRemat, "eager-in-remat", false, "evict recomputed tensors that are not needed later as "+
		"soon as they were read")
	fl.StringVar(&f.Quirks, "quirks", "", "mistakes of MegEngine to reproduce, separated by commas: "+
		remat.AllQuirks.String()+", or all")
	fl.Uint64Var(&f.Seed, "seed", 0, "seed of random choices")
}

func heuristicNames() (names []string) {
	for _, h := range remat.Heuristics() {
		names = append(names, h.Name)
	}
	for _, p := range remat.Plans() {
		names = append(names, p.Name)
	}
	return names
}

func releaseNames() (names []string) {
	for _, r := range grid.Releases() {
		names = append(names, r.Name)
	}
	return names
}

// behaveAs applies the settings of a release of MegEngine, except for flags that are given.
func (f *rematFlags) behaveAs(given func(flag string) bool) error {
	if f.megEngine == "" {
		return nil
	}
	r, err := grid.ReleaseOf(f.megEngine)
	if err != nil {
		return flagError("megengine", err)
	}
	for flag, set := range map[string]struct {
		to    *string
		value string
	}{
		"heuristics": {&f.heuristics, r.Heuristic}, "ladders": {&f.ladders, r.Ladder},
		"liveness": {&f.Liveness, r.Liveness}, "trigger": {&f.Trigger, r.Trigger}, "defrag": {&f.Defrag, r.Defrag},
		"sampling": {&f.Sampling, r.Sampling}, "min-evictee": {&f.MinEvictee, r.MinEvictee},
		"parent-order": {&f.ParentOrder, r.ParentOrder}, "quirks": {&f.Quirks, r.Quirks},
	} {
		if !given(flag) {
			*set.to = set.value
		}
	}
	return nil
}

// listHeuristics writes the formula, the preferred victims and the source of each heuristic.
func listHeuristics(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "A heuristic evicts the storage with the least score; of equals, the last in the order of the pool.\n"+
		"The symbols of the scores, for a storage that is in memory:\n\n")
	for _, s := range remat.Symbols() {
		name := s.Name
		for line := range strings.Lines(text.WrapSoft(s.Meaning, 95)) {
			fmt.Fprintf(b, "%-2s %s\n", name, strings.TrimSpace(line))
			name = ""
		}
	}
	fmt.Fprint(b, "\nThe heuristics: name, score, preferred victims and source:\n\n")
	for _, h := range remat.Heuristics() {
		fmt.Fprintf(b, "%-14s  %s\n", h.Name, h.Formula())
		for _, line := range []string{h.Prefers, "source: " + h.Source} {
			fmt.Fprintf(b, "%-14s  %s\n", "", line)
		}
	}
	fmt.Fprint(b, "\nPlans choose before the run which tensors to keep; they need a log that is a chain:\n\n")
	for _, p := range remat.Plans() {
		name := p.Name
		for line := range strings.Lines(text.WrapSoft("keeps "+p.Keeps, 110) + "\nsource: " + p.Source) {
			fmt.Fprintf(b, "%-14s  %s\n", name, strings.TrimSpace(line))
			name = ""
		}
	}
	for _, list := range []struct {
		title    string
		settings []remat.HeuristicSetting
	}{
		{"The settings of mge, as in mge:size=2:stale=0.5:", remat.ScoreSettings()},
		{"The settings of every heuristic, as in eq:evict=swap:link=h100-80g:", remat.EvictionSettings()},
	} {
		fmt.Fprintf(b, "\n%s\n\n", list.title)
		for _, s := range list.settings {
			fmt.Fprintf(b, "%-9s  %s (%s)\n", s.Name, strings.ReplaceAll(s.Meaning, "`", ""), s.Default)
		}
	}
	return b.Flush()
}

func ladderWords() string {
	var words []string
	for _, l := range remat.Ladders() {
		words = append(words, l.Name+": "+l.Doc)
	}
	return strings.Join(words, "; ")
}

func (f *rematFlags) run(cmd *cobra.Command, args []string) error {
	if f.listHeuristics {
		return new(outputs).write(cmd.OutOrStdout(), listHeuristics)
	}
	paths, batches, err := f.logs(args)
	if err != nil {
		return err
	}
	if err := f.files.check(paths...); err != nil {
		return err
	}
	if err := f.behaveAs(cmd.Flags().Changed); err != nil {
		return err
	}
	o, setups, err := f.options()
	if err != nil {
		return err
	}
	if o.Cells, err = f.store.cells(cmd, replay.Target{}); err != nil {
		return err
	}
	if batches != nil {
		return f.largestBatches(cmd, paths, batches, setups, o)
	}
	if o.Ratios, err = grid.ParseRatios(f.budgets); err != nil {
		return flagError("budgets", err)
	}
	logs, err := openLogs(cmd, paths, f.memory)
	if err != nil {
		return err
	}
	lines := len(logs) * len(o.Heuristics) * (1 + len(setups)*len(o.Ladders))
	p := begin(cmd, stage{unit: "runs", total: int64(lines * len(o.Ratios))})
	o.Done = func(share float64) {
		p.estimated(share)
		p.step()
	}
	ctx, done := untilInterrupt(cmd)
	r, err := grid.Grid(ctx, logs, setups, o)
	done()
	if r == nil {
		return err
	}
	f.files.figures(r, report.RematTable(r))
	f.files.page(cmd, args, func() (*page.Report, error) { return view.Grid(r, colors(f.catalogue)) })
	return f.files.conclude(cmd, err, len(r.Lines) > 0, fmt.Sprintf("%d of %d lines are finished", len(r.Lines), lines),
		func(w io.Writer) error { return report.RematTables(w, r) })
}

func (f *rematFlags) options() (o grid.Options, setups []setting.Setup, err error) {
	o = grid.Options{Settings: f.Settings, Workers: f.workers}
	for _, list := range []struct {
		flag, text string
		names      *[]string
	}{{"heuristics", f.heuristics, &o.Heuristics}, {"ladders", f.ladders, &o.Ladders}} {
		if *list.names = splitNames(list.text); len(*list.names) == 0 {
			return o, nil, flagError(list.flag, errNoNames)
		}
	}
	if o.Heuristics, err = grid.ParseHeuristics(o.Heuristics); err != nil {
		return o, nil, flagError("heuristics", err)
	}
	if err := f.judge(o.Heuristics, o.Ladders); err != nil {
		return o, nil, err
	}
	if err := grid.CheckLimit(f.Limit); err != nil {
		return o, nil, flagError("limit", err)
	}
	if f.workers < 0 {
		return o, nil, flagError("workers", errWorkers)
	}
	named, err := parseStrategyArgs(f.strategies)
	if err != nil {
		return o, nil, flagError("strategies", err)
	}
	for _, a := range named {
		if a.name == grid.Counting { // always runs
			continue
		}
		s, err := a.setup(f.catalogue)
		if err != nil {
			return o, nil, flagError("strategies", err)
		}
		s.Name = a.String()
		setups = append(setups, s)
	}
	return o, setups, nil
}

// judge refuses unknown names and conflicting flags.
func (f *rematFlags) judge(heuristics, ladders []string) error {
	const plain, eager = "lru", "eager" // go with everything
	for _, one := range []struct {
		flag string
		s    grid.Settings
	}{
		{"liveness", grid.Settings{Liveness: f.Liveness}},
		{"trigger", grid.Settings{Liveness: eager, Trigger: f.Trigger}},
		{"defrag", grid.Settings{Liveness: eager, Defrag: f.Defrag}},
		{"sampling", grid.Settings{Liveness: eager, Sampling: f.Sampling}},
		{"min-evictee", grid.Settings{Liveness: eager, MinEvictee: f.MinEvictee}},
		{"parent-order", grid.Settings{Liveness: eager, ParentOrder: f.ParentOrder}},
		{"quirks", grid.Settings{Liveness: eager, Quirks: f.Quirks}},
	} {
		if err := one.s.Check(plain, ""); err != nil {
			return flagError(one.flag, err)
		}
	}
	for _, l := range ladders {
		if err := f.Check(plain, l); err != nil {
			return flagError("ladders", err)
		}
	}
	for _, h := range heuristics {
		if err := f.Check(h, ""); err != nil {
			return flagError("heuristics", err)
		}
	}
	return nil
}

func openLogs(cmd *cobra.Command, paths []string, most device.Size) ([]grid.Log, error) {
	if err := onceFromStdin(paths); err != nil {
		return nil, err
	}
	logs := make([]grid.Log, len(paths))
	for i, path := range paths {
		if path == "-" {
			collectWithin(most)
			s, err := remat.Read(cmd.InOrStdin(), "stdin", budget.New(most))
			if err != nil {
				return nil, err
			}
			logs[i] = grid.Log{Model: "stdin", Schedule: s}
			continue
		}
		l, err := openLog(path, most)
		if err != nil {
			return nil, err
		}
		logs[i] = *l
	}
	return logs, nil
}

// openLog reads the file of an op log.
func openLog(path string, most device.Size) (*grid.Log, error) {
	collectWithin(most)
	s, err := remat.ReadFile(path, budget.New(most))
	if err != nil {
		return nil, noLog(path, err)
	}
	return &grid.Log{Model: stem(path), Schedule: s}, nil
}

// noLog returns the error about a log that cannot be read, or a better one if the file is a trace.
func noLog(path string, err error) error {
	if formats.Recognize(path, formats.Options{}) != nil {
		return err
	}
	return fmt.Errorf("%s: a trace of allocations, for replay and compare: want a log of operators, as "+
		"vramyard.dtrlog records it (docs/remat.md)", path)
}
