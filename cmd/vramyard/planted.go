package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/report"
	"github.com/vramyard/vramyard/internal/outfile"
	"github.com/vramyard/vramyard/internal/planted"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/strategies"
)

// program is the import path of this program, and module that of the module it is in.
const (
	program = module + "/cmd/vramyard"
	module  = "github.com/vramyard/vramyard"
)

// runPlanted looks for every planted bug of the strategies named. A build without bugs has
// another one made that has them.
func (f *checkFlags) runPlanted(cmd *cobra.Command) error {
	if err := f.judgePlanted(cmd); err != nil {
		return err
	}
	if !planted.Enabled {
		return f.runPlantedBuild(cmd)
	}
	bugs := check.PlantedBugs(splitNames(f.strategies)...)
	p := begin(cmd, stage{unit: "bugs", total: int64(len(bugs))})
	ctx, done := untilInterrupt(cmd)
	defer done()
	o := check.Options{Sequences: f.tests, Operations: f.ops, Seed: f.seed}
	verdicts := make([]check.Verdict, 0, len(bugs))
	for _, b := range bugs {
		v, err := check.Planted(strategies.All(), b, o)
		if err != nil {
			return err
		}
		verdicts = append(verdicts, v)
		p.step()
		if ctx.Err() != nil && len(verdicts) < len(bugs) {
			return finished(cmd.OutOrStdout(), false, fmt.Sprintf("%d of %d bugs were looked for", len(verdicts), len(bugs)),
				func(w io.Writer) error { return writeVerdicts(w, verdicts) })
		}
	}
	return writeVerdicts(cmd.OutOrStdout(), verdicts)
}

// judgePlanted returns what is wrong with the flags.
func (f *checkFlags) judgePlanted(cmd *cobra.Command) error {
	for _, name := range []string{"config", "contents", "device", "faults", "out"} {
		if cmd.Flags().Changed(name) {
			return flagError(name, errors.New("does not go with --planted: each bug brings its own"))
		}
	}
	names := splitNames(f.strategies)
	if len(names) == 0 {
		return flagError("strategies", errNoStrategies)
	}
	for _, name := range names {
		bare, preset, _ := strings.Cut(name, ":")
		if _, ok := strategies.All().Spec(bare); ok && preset == "" {
			continue // the bugs of all presets
		}
		if _, err := strategies.All().Lookup(name, nil); err != nil {
			return err
		}
	}
	return f.judge()
}

// runPlantedBuild has the same done by a build of this program that has the bugs.
func (f *checkFlags) runPlantedBuild(cmd *cobra.Command) error {
	args := []string{
		"run", "-tags", "planted", program, "check", "--planted", "--strategies", f.strategies,
		"--tests", strconv.Itoa(f.tests), "--ops", strconv.Itoa(f.ops), "--seed", strconv.FormatInt(f.seed, 10),
	}
	if !sourceAtHand() {
		return fmt.Errorf("--planted: this build has no planted bugs: in the source of %s, run go run -tags planted ./cmd/vramyard check --planted",
			module)
	}
	tell(cmd.ErrOrStderr(), "this build has no planted bugs; running go run -tags planted %s", program)
	again := exec.CommandContext(cmd.Context(), "go", args...)
	again.Stdout, again.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	err := again.Run()
	if err != nil {
		err = fmt.Errorf("--planted: go run -tags planted %s: %w", program, err)
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = failure{err} // the build has said what it missed
	}
	return err
}

// sourceAtHand reports whether there is a Go toolchain, and whether the folder that the
// program runs in is inside the module.
func sourceAtHand() bool {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return false
	}
	text, err := os.ReadFile(string(bytes.TrimSpace(out)))
	return err == nil && bytes.HasPrefix(text, []byte("module "+module+"\n"))
}

// writeVerdicts writes the table of bugs and how many were caught. The error says so too,
// if there are any that were not, or that did not shrink.
func writeVerdicts(stdout io.Writer, verdicts []check.Verdict) error {
	caught, small := 0, 0
	for _, v := range verdicts {
		if v.Caught() {
			caught++
		}
		if v.Caught() && v.Small() {
			small++
		}
	}
	t := report.NewSheet("", verdictColumns, verdicts)
	err := outfile.Write("-", stdout, func(w io.Writer) error {
		fmt.Fprintf(w, "%s\ncaught %d of %d\n", t.Terminal(report.Style{}), caught, len(verdicts))
		return nil
	})
	switch n := len(verdicts); {
	case err != nil:
		return err
	case caught < n:
		return failure{fmt.Errorf("%d of %d planted bugs were missed", n-caught, n)}
	case small < n:
		return failure{fmt.Errorf("%d of %d counterexamples are more than twice as long as they need be", n-small, n)}
	}
	return nil
}

// verdictColumns are the columns of the planted bugs.
var verdictColumns = []report.ColumnOf[check.Verdict]{
	{Column: report.Column{Name: "bug"}, Cell: func(v check.Verdict) report.Cell { return report.Cell{Text: string(v.Bug.ID)} }},
	{Column: report.Column{Name: "strategy"}, Cell: func(v check.Verdict) report.Cell { return report.Cell{Text: v.Bug.Setting.Strategy} }},
	{Column: report.Column{Name: "invariant"}, Cell: func(v check.Verdict) report.Cell { return report.Cell{Text: fmt.Sprint(v.Broken)} }},
	{Column: report.Column{Name: "sequences", Number: true}, Cell: func(v check.Verdict) report.Cell { return report.Cell{Text: fmt.Sprint(v.Sequences)} }},
	{Column: report.Column{Name: "operations", Number: true}, Cell: func(v check.Verdict) report.Cell { return report.Cell{Text: fmt.Sprint(v.Shrunk)} }},
	{Column: report.Column{Name: "enough", Number: true}, Cell: func(v check.Verdict) report.Cell { return report.Cell{Text: fmt.Sprint(v.Minimal)} }},
	{
		Column: report.Column{Name: "verdict"},
		Cell: func(v check.Verdict) report.Cell {
			switch {
			case !v.Caught():
				return report.Cell{Text: "missed, want " + strings.Join(v.Bug.Breaks, " or ")}
			case !v.Small():
				return report.Cell{Text: "caught, not shrunk"}
			}
			return report.Cell{Text: "caught"}
		},
	},
}
