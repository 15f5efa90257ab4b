package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/gate"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/internal/nearest"
)

type gateFlags struct {
	catalogue setting.Catalogue
	baseline  string
	update    gate.Update
	source    formats.Options
	files     outputs
}

func newGate(catalogue setting.Catalogue) *cobra.Command {
	f := gateFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "gate --baseline BUDGET.yaml RECORDING...",
		Short: "Fail if recorded work needs more memory than its budget",
		Long: `Replay the work of each recording from canonical states of the pool, and compare minimum capacity, peak reserved
bytes, peak live bytes and device calls with the budget in a committed file. Equal requests give equal figures,
whatever the program did before, so a violation is a change of the work. It is explained by the blocks that were
added, grew or are held longer, with their call sites.

The work is the recorded steps, as "vramyard trace info" finds them in the marks, or else the whole recording. The
budget of a recording is found by its name: that of the file, without endings.

--update writes the file: it lowers figures, and adds recordings that have no budget. --update=raise also raises
figures. docs/gate.md has the form of the file, and an action for GitHub.

The exit status is 1 if a figure exceeds its budget, or a recording of the file is missing, and 2 if a recording
cannot be read, has no budget, or has too few steps.`,
		Example: "  vramyard gate --baseline budget.yaml --update train.pickle\n" +
			"  vramyard gate --baseline budget.yaml --markdown summary.md train.pickle",
		Args: cobra.MinimumNArgs(1),
		RunE: f.run,
	}
	c.Flags().StringVar(&f.baseline, "baseline", "", `file with the budgets, such as "budget.yaml"`)
	mustHave(c, "baseline")
	c.Flags().Var((*updateFlag)(&f.update), "update",
		`change the file: "lower" figures to the measured ones and add new recordings, or also "raise" figures`)
	c.Flags().Lookup("update").NoOptDefVal = string(gate.UpdateLower)
	addPart(c, &f.source)
	f.files.add(c, "json", `also write the outcome as JSON to this file, "-" for standard output instead of tables`)
	f.files.add(c, "markdown", `also write the outcome as Markdown to this file, for the summary of a job and for a comment`)
	f.files.add(c, "junit", `also write the outcome as results of tests in the form of JUnit to this file`)
	f.files.add(c, "sarif", `also write the violations as SARIF 2.1.0 to this file, for code scanners`)
	return c
}

// updateFlag is the flag --update.
type updateFlag gate.Update

func (u *updateFlag) String() string { return string(*u) }

func (u *updateFlag) Type() string { return "lower|raise" }

func (u *updateFlag) Set(text string) error {
	if !slices.Contains(gate.Updates, gate.Update(text)) {
		return fmt.Errorf("want %s or %s", gate.UpdateLower, gate.UpdateRaise)
	}
	*u = updateFlag(text)
	return nil
}

func (f *gateFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.files.check(append(slices.Clone(args), f.baseline)...); err != nil {
		return err
	}
	if err := onceFromStdin(args); err != nil {
		return err
	}
	b, err := f.readBaseline()
	if err != nil {
		return flagError("baseline", err)
	}
	r := &gate.Report{Schema: gate.Schema, Provenance: provenance.Read(), Baseline: f.baseline}
	var given []string
	ctx, done := untilInterrupt(cmd)
	defer done()
	for _, path := range args {
		result, err := f.judge(ctx, cmd, b, path, given)
		if err != nil {
			return err
		}
		given = append(given, result.Name)
		r.Results = append(r.Results, *result)
	}
	r.Missing = b.Missing(given)
	if f.update != gate.UpdateNone {
		if err := fileio.Write(f.baseline, nil, b.Write); err != nil {
			return flagError("baseline", err)
		}
	}
	return f.write(cmd, r)
}

// write writes the outcome.
func (f *gateFlags) write(cmd *cobra.Command, r *gate.Report) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	f.files.json(r)
	f.files.of("markdown").fill = func(w io.Writer) error { return report.GateMarkdown(w, r) }
	f.files.of("junit").fill = func(w io.Writer) error { return report.GateJUnit(w, r) }
	f.files.of("sarif").fill = func(w io.Writer) error { return report.GateSARIF(w, r, root) }
	err = f.files.write(cmd.OutOrStdout(), func(w io.Writer) error { return report.Gate(w, r) })
	if n := r.Violated(); n > 0 {
		err = errors.Join(failure{fmt.Errorf("%s: %d violated: %s", f.baseline, n, strings.Join(f.violated(r), ", "))}, err)
	}
	return err
}

// violated returns the names of the recordings with violations.
func (f *gateFlags) violated(r *gate.Report) (names []string) {
	for i := range r.Results {
		if r.Results[i].Violated() > 0 {
			names = append(names, r.Results[i].Name)
		}
	}
	return append(names, r.Missing...)
}

// readBaseline reads the budgets. A file that does not exist is empty if it will be written.
func (f *gateFlags) readBaseline() (*gate.Baseline, error) {
	file, err := openFile(f.baseline)
	if errors.Is(err, os.ErrNotExist) {
		if f.update != gate.UpdateNone {
			return &gate.Baseline{}, fileio.CheckOutput(f.baseline)
		}
		return nil, fmt.Errorf("%w: --update writes it", err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() // only read from: nothing can be lost
	b, err := gate.ReadBaseline(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.baseline, err)
	}
	return b, nil
}

// judge judges one recording. given are the names of the ones before it.
func (f *gateFlags) judge(ctx context.Context, cmd *cobra.Command, b *gate.Baseline, path string,
	given []string) (*gate.Result, error) {
	src, of, err := openRecording(openSource, path, reading(cmd, path, f.source), cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	r, err := f.judgeWork(ctx, cmd, b, src, of, given)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return r, err
}

func (f *gateFlags) judgeWork(ctx context.Context, cmd *cobra.Command, b *gate.Baseline, src trace.Source,
	of *postmortem.Recording, given []string) (*gate.Result, error) {
	name := src.Head().Header.Name
	if slices.Contains(given, name) {
		return nil, fmt.Errorf("another recording has the name %q too: rename the file", name)
	}
	e := b.Budget(name)
	switch {
	case e == nil && f.update == gate.UpdateNone:
		return nil, fmt.Errorf("no budget has the name %q: %s--update adds it", name, nearest.Hint(name, b.Missing(nil)))
	case e == nil:
		var err error
		if e, err = f.newBudget(name, src, of); err != nil {
			return nil, err
		}
		b.Budgets = append(b.Budgets, e)
	case e.New() && f.update == gate.UpdateNone:
		return nil, fmt.Errorf("the budget %q has no figures: --update adds them", name)
	}
	setup, err := f.catalogue.Lookup(e.Strategy, e.Config)
	if err != nil {
		return nil, fmt.Errorf("%s: budget %q: %w", f.baseline, name, err)
	}
	var stacks top.Stacks
	if of.Snapshot != nil {
		stacks = of.Stacks()
	}
	w, err := gate.NewWork(walking(cmd, "cutting", src), stacks, e.Part())
	if err != nil {
		return nil, err
	}
	p := begin(cmd, stage{what: "replaying " + name, unit: "replays"})
	now, err := w.Measure(ctx, compare.NewPool(0, heapLeft()), setup, p.replayed)
	if err != nil {
		return nil, err
	}
	f.noteSettings(w, e, src)
	return b.Judge(e, w, now, f.update, provenance.Version)
}

// newBudget returns a budget without figures: of the recorded allocator with its settings, or else
// of PyTorch's.
func (f *gateFlags) newBudget(name string, src trace.Source, of *postmortem.Recording) (*gate.Budget, error) {
	e := &gate.Budget{Name: name, Strategy: cachingName, Figures: map[gate.State]gate.Figures{}}
	recorded := settingsOf(src.Head().Header)
	if recorded == nil {
		return e, nil
	}
	a, err := recordedAllocator(f.catalogue, recorded, of.Timeline, "")
	if err != nil || a.setup.Name == "" {
		return e, err
	}
	e.Strategy = a.setup.Name
	e.Config, err = json.Marshal(a.setup.Config)
	return e, err
}

// noteSettings notes recorded settings of PyTorch that the budget does not have.
func (f *gateFlags) noteSettings(w *gate.Work, e *gate.Budget, src trace.Source) {
	conf := func(config []byte) string {
		var c struct {
			Conf string `json:"conf"`
		}
		_ = json.Unmarshal(config, &c) // settings of another strategy have no field conf
		return c.Conf
	}
	recorded := settingsOf(src.Head().Header)
	if recorded != nil && conf(recorded) != conf(e.Config) {
		w.Notes = append(w.Notes, fmt.Sprintf("The program ran with the settings %q, the budget is of %q: to change that, "+
			"remove the entry and write it again with --update.", conf(recorded), conf(e.Config)))
	}
}
