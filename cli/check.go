package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
)

type checkFlags struct {
	catalogue setting.Catalogue
	deviceFlags
	strategies, config, out string
	tests, ops              int
	seed                    int64
	contents                bool
	faults, planted         bool
	files                   outputs
	card                    *checkCard // nil without a GPU
}

// Upper limits of check: sequences of all seeds are numbered by an int, and a
// sequence is held in memory together with its shrunk variants.
const (
	mostTests = 1_000_000_000
	mostOps   = 100_000
)

func newCheck(catalogue setting.Catalogue) *cobra.Command {
	f := checkFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the invariants of strategies with generated calls",
		Long: `Generate sequences of legal and illegal calls, run each through each strategy on a small
simulated GPU, and check every answer and the strategy's visible state after every call.
docs/invariants.md lists the invariants. The same seed finds the same failures on any number of
cores.

A strategy with its own limit is checked on two devices, of 3/4 and of 3/2 of the limit; a
limit above 64 MiB is lowered to 16 MiB, so that short sequences reach it. Other strategies are
checked on a device with room for eight regions of the size of the first. The devices have the
settings of --device except for the capacity. By default regions are aligned to 256 bytes, which
exposes more mistakes.

With --contents the simulated device stores the contents of its memory. Every block is filled
with a unique pattern when it is granted, and compared when it is freed and whenever all blocks
are checked. An overlap thus shows in the memory even if the addresses look right; it is
reported as I51, before anything else.

With --device cuda:0 each device call of the checked instance is made on a GPU as well, and the
answers are compared. Blocks are always filled and compared, by marks at their ends and pages. A
difference is I63. Addresses, time and the order of work come from the simulated device, on
which the second instance runs alone; the report lists what ran where. See docs/gpu.md.

A failure is shrunk to a few calls, printed with the state after each call, and written as a
trace that "vramyard replay --check" repeats. The exit status is then 1.

With --planted the suite itself is tested: known bugs are planted in the strategies, and in the
runs of vramyard remat (--strategies remat), one at a time. Each must be found and shrunk to few
calls. This needs the Go toolchain and the source of this program: run it in a folder of the
source. The search ends after eight minutes with any seed, and says so. The exit status is 1 if a
bug is missed or not looked for.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	c.Flags().StringVar(&f.strategies, "strategies", strings.Join(soundNames(catalogue), ","),
		"strategies to check, "+namedUsage)
	addConfig(c, &f.config, "settings of the one strategy named, as a JSON object; they "+
		"replace the preset's")
	c.Flags().IntVar(&f.tests, "tests", 2000, "sequences of calls for each strategy on each device; with --planted "+
		"20000 for each bug by default")
	c.Flags().IntVar(&f.ops, "ops", 100, "calls in a sequence")
	c.Flags().Int64Var(&f.seed, "seed", 1, "seed of the first sequence; each next one has the next seed")
	c.Flags().BoolVar(&f.contents, "contents", false, "fill and compare the memory of every block")
	c.Flags().BoolVar(&f.faults, "faults", false,
		"also inject faults: in one of 40 sequences the device refuses each of its calls in turn")
	c.Flags().BoolVar(&f.planted, "planted", false, "look for the planted bugs of the strategies instead")
	f.addPlace(c, "the capacity is used for a GPU only, as the limit of the memory that is held of it")
	f.files.addHTML(c)
	c.Flags().StringVar(&f.out, "out", ".", "folder for the traces of failures")
	return c
}

// soundNames returns the names of a catalogue without those that declare to break the disjointness
// of blocks, which has no exceptions.
func soundNames(catalogue setting.Catalogue) []string {
	return slices.DeleteFunc(catalogue.Names(), func(name string) bool {
		s, err := catalogue.Lookup(name, nil)
		return err == nil && overlaps(s)
	})
}

// candidate is a strategy on one device, with its name on the command line.
type candidate struct {
	props.Subject
	strategyArg
}

func (f *checkFlags) run(cmd *cobra.Command) error {
	if f.planted && f.files.wanted("html") {
		return flagError("html", errors.New("there is no page of planted bugs"))
	}
	if f.planted {
		return f.runPlanted(cmd)
	}
	candidates, err := f.candidates()
	if err == nil {
		err = f.verify(cmd, candidates)
	}
	return errors.Join(err, f.card.close())
}

func (f *checkFlags) verify(cmd *cobra.Command, candidates []candidate) error {
	subjects := make([]props.Subject, len(candidates))
	for i, s := range candidates {
		subjects[i] = s.Subject
	}
	o := check.Options{Sequences: f.tests, Operations: f.ops, Seed: f.seed, Contents: f.contents, Faults: f.faults,
		Card: f.card.card()}
	o.Progress = begin(cmd, stage{unit: "batches", total: int64(o.Batches(len(subjects)))}).step
	ctx, done := untilInterrupt(cmd)
	r, err := check.Run(ctx, subjects, o)
	done()
	if errors.Is(err, context.Canceled) && len(r.Subjects) > 0 {
		sheet := checkSheet(r)
		return f.files.finished(cmd.OutOrStdout(),
			fmt.Sprintf("%d of %d subjects were begun; the table shows their sequences", len(r.Subjects), len(subjects)),
			func(w io.Writer) error { _, err := fmt.Fprintln(w, sheet.Terminal(w)); return err })
	}
	if err != nil {
		return err
	}
	return f.write(cmd, candidates, r)
}

func (f *checkFlags) candidates() (all []candidate, err error) {
	if err := f.judge(); err != nil {
		return nil, err
	}
	on, limit, err := f.placed()
	if err != nil {
		return nil, err
	}
	named, err := strategyArgs(f.strategies, f.config)
	if err != nil {
		return nil, err
	}
	like := on.Config
	if on.GPU != nil {
		if f.card, err = openCard(on, limit); err != nil {
			return nil, flagError("device", err)
		}
		like = f.card.like()
	}
	for _, a := range named {
		setup, err := a.lookup(f.catalogue, "strategies", f.config)
		if err != nil {
			return nil, err
		}
		subjects, err := check.Subjects(setup, like)
		if err != nil {
			return nil, err
		}
		for _, s := range subjects {
			if f.card != nil {
				if err := f.card.fits(s); err != nil {
					return nil, flagError("device", err)
				}
			}
			all = append(all, candidate{s, a})
		}
	}
	return all, nil
}

// splitNames returns the names in a list separated by commas, each once.
func splitNames(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (f *checkFlags) judge() error {
	if f.tests < 1 || f.tests > mostTests {
		return flagError("tests", fmt.Errorf("want 1 to %d", mostTests))
	}
	if f.ops < 1 || f.ops > mostOps {
		return flagError("ops", fmt.Errorf("want 1 to %d", mostOps))
	}
	info, err := os.Stat(f.out) // before the work, not after it
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: not a folder", f.out)
	}
	if err == nil && f.out != "." { // a healthy check writes nothing there
		err = fileio.CheckOutput(filepath.Join(f.out, "failure.trace"))
	}
	if err != nil {
		return flagError("out", err)
	}
	return f.files.check()
}

// write writes the report, and the traces of failures as files. The error has the number of
// subjects failed.
func (f *checkFlags) write(cmd *cobra.Command, candidates []candidate, r check.Report) error {
	sheet := checkSheet(r)
	p := f.page(sheet)
	if f.card != nil {
		on, not := f.card.coverage(r)
		p.Facts = append(p.Facts, page.Fact{Name: "device", Value: f.card.place.GPU.String()},
			page.Fact{Name: "on it", Value: on},
			page.Fact{Name: "not on it", Value: not})
	}
	var broken []*brokenInvariant
	var traces []*output
	var errs []error
	for i, s := range r.Subjects {
		if s.Failure == nil {
			continue
		}
		candidates[i].Subject = s.Subject // as it was verified
		story, err := check.Reproduce(s.Subject, s.Failure)
		broken = append(broken, &brokenInvariant{s.Failure, story, candidates[i].name, f.again(candidates[i], s.Failure)})
		traces = append(traces, &output{path: f.tracePath(s.Failure), fill: s.Failure.WriteTrace})
		errs = append(errs, err)
	}
	f.files.page(cmd, nil, func() (*page.Report, error) { return withFailures(p, broken), nil })
	f.files.all = append(traces, f.files.all...)
	errs = append(errs, f.files.write(cmd.OutOrStdout(), func(w io.Writer) error {
		fmt.Fprintln(w, sheet.Terminal(w))
		if f.card != nil {
			on, not := f.card.coverage(r)
			fmt.Fprintf(w, "device: %v\non it: %s\nnot on it: %s\n", f.card.place.GPU, on, not)
		}
		for _, b := range broken {
			fmt.Fprint(w, b.text(f.tracePath(b.Failure)))
		}
		if len(broken) == 0 {
			fmt.Fprintf(w, "%d subjects, %d sequences: every invariant held\n", len(r.Subjects), r.Sequences())
		}
		return nil
	}))
	if len(broken) > 0 {
		first := broken[0].Failure
		errs = append(errs, failure{fmt.Errorf("%d of %d subjects broke an invariant, first %s: %v (%s)", len(broken),
			len(r.Subjects),
			first.Subject, first.Violation.Number, first.Violation.Number.Name())})
	}
	return errors.Join(errs...)
}

func (f *checkFlags) tracePath(failure *props.Failure) string {
	return filepath.Join(f.out, traceName(failure))
}

// again returns the command that repeats a failure by its seed.
func (f *checkFlags) again(s candidate, failure *props.Failure) string {
	name := "--strategies " + report.ShellWord(s.name)
	if s.config != "" {
		name += " --config " + report.ShellWord(s.config)
	}
	if f.device.given {
		name += " --device " + report.ShellWord(f.device.value)
	}
	if f.contents {
		name += " --contents"
	}
	if f.faults {
		name += " --faults"
	}
	return fmt.Sprintf("vramyard check %s --tests 1 --ops %d --seed %d", name, f.ops, failure.Seed)
}

// unfit matches the characters of a subject's name that a file name should not have.
var unfit = regexp.MustCompile(`[^A-Za-z0-9_.]+`)

func traceName(f *props.Failure) string {
	return unfit.ReplaceAllString(f.Subject, "-") + "-" + f.Violation.Number.String() + ".trace"
}

func checkSheet(r check.Report) report.Sheet {
	var s report.Sheet
	for i, name := range []string{
		"subject", "sequences", "calls", "grants", "frees", "out of memory", "bad requests", "bad frees", "faults", "verdict",
	} {
		s.Columns = append(s.Columns, report.Column{Name: name, Number: i > 0 && i < 9})
	}
	s.Title = fmt.Sprintf("%d subjects, %d sequences", len(r.Subjects), r.Sequences())
	for _, of := range r.Subjects {
		n := of.Result
		row := []report.Cell{{Text: of.Subject.Name}}
		for _, v := range []int{n.Sequences, n.Calls, n.Grants, n.Frees, n.OutOfMemory, n.Mistakes, n.BadFrees,
			int(n.Faults)} {
			text := strconv.Itoa(v)
			row = append(row, report.Cell{Text: text, Value: text, Number: true})
		}
		s.Rows = append(s.Rows, append(row, report.Cell{Text: verdict(of)}))
	}
	return s
}

// verdict summarizes the result of a subject in a few words.
func verdict(s check.SubjectReport) string {
	if s.Failure != nil {
		n := s.Failure.Violation.Number
		return fmt.Sprintf("broke %v (%s)", n, n.Name())
	}
	if s.Result.Sequences == 0 {
		return "not reached"
	}
	var not []string
	for n := range props.Numbers {
		if s.Result.Excepted[n] > 0 {
			not = append(not, n.String())
		}
	}
	if len(not) > 0 {
		return "held, but for " + strings.Join(not, ", ")
	}
	return "held"
}
