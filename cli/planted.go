package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/props/planted"
	"github.com/vramyard/vramyard/props/planted/bugs"
)

// module is the path of the module that this program is in.
const module = "github.com/vramyard/vramyard"

// runPlanted searches for every planted bug of the named strategies. A build without bugs builds
// and runs one with them.
func (f *checkFlags) runPlanted(cmd *cobra.Command) error {
	if err := f.judgePlanted(cmd); err != nil {
		return err
	}
	if !planted.Enabled {
		return f.runPlantedBuild(cmd)
	}
	var names []string // all
	if cmd.Flags().Changed("strategies") {
		names = splitNames(f.strategies)
	}
	all := check.PlantedBugs(names...)
	p := begin(cmd, stage{unit: "bugs", total: int64(len(all))})
	ctx, done := untilInterrupt(cmd)
	defer done()
	for name, n := range map[string]*int{"tests": &f.tests, "ops": &f.ops} {
		if !cmd.Flags().Changed(name) {
			*n = 0 // the default of package check
		}
	}
	o := check.Options{Sequences: f.tests, Operations: f.ops, Seed: f.seed}
	verdicts, err := lookFor(ctx, all, plantedBudget, func(ctx context.Context, b bugs.Bug) (check.Verdict, error) {
		defer p.step()
		return check.Planted(ctx, f.catalogue, b, o)
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil && len(verdicts) < len(all) {
		return new(outputs).finished(cmd.OutOrStdout(), fmt.Sprintf("%d of %d bugs were looked for", len(verdicts), len(all)),
			func(w io.Writer) error { return writeVerdicts(w, verdicts, len(verdicts)) })
	}
	return writeVerdicts(cmd.OutOrStdout(), verdicts, len(all))
}

// plantedBudget bounds the search for all planted bugs. It usually takes a minute; with an unlucky
// seed a bug is only found after hours. Two minutes are left to build the program.
const plantedBudget = 8 * time.Minute

// lookFor searches for one bug after another until ctx ends or the budget is spent, and returns the
// verdicts that were reached.
func lookFor(ctx context.Context, all []bugs.Bug, budget time.Duration,
	look func(context.Context, bugs.Bug) (check.Verdict, error)) (
	verdicts []check.Verdict, err error,
) {
	ctx, stop := context.WithTimeout(ctx, budget)
	defer stop()
	for _, b := range all {
		v, err := look(ctx, b)
		switch {
		case err == nil:
			verdicts = append(verdicts, v)
		case ctx.Err() == nil:
			return nil, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return verdicts, nil
}

// judgePlanted returns the first error of the flags.
func (f *checkFlags) judgePlanted(cmd *cobra.Command) error {
	for _, name := range []string{"config", "contents", "device", "faults", "out"} {
		if cmd.Flags().Changed(name) {
			return flagError(name, errors.New("not with --planted: each bug has its own"))
		}
	}
	names := splitNames(f.strategies)
	if len(names) == 0 {
		return flagError("strategies", errNoNames)
	}
	for _, name := range names {
		bare, preset, _ := strings.Cut(name, ":")
		if _, ok := f.catalogue.Spec(bare); ok && preset == "" || name == check.Remat {
			continue // the bugs of all presets
		}
		if _, err := f.catalogue.Lookup(name, nil); err != nil {
			return flagError("strategies", err)
		}
	}
	return f.judge()
}

func (f *checkFlags) runPlantedBuild(cmd *cobra.Command) (err error) {
	root, ok := sourceAtHand()
	if !ok {
		return fmt.Errorf("--planted: this build has no planted bugs: in the source of %s, run go run ./cmd/vramyard check "+
			"--planted", module)
	}
	folder, err := os.MkdirTemp("", "vramyard-planted-")
	if err != nil {
		return fmt.Errorf("--planted: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	exe := filepath.Join(folder, "vramyard.exe") // any system runs a program of that name
	tell(cmd.ErrOrStderr(), "building the program with the planted bugs")
	ctx, done := untilInterrupt(cmd)
	defer done()
	plant := []string{"run", "./props/planted/bugs/overlay", folder}
	if cmd.Flags().Changed("strategies") {
		plant = append(plant, splitNames(f.strategies)...)
	}
	if err = runChild(ctx, cmd, root, "go", plant...); err == nil {
		err = runChild(ctx, cmd, root, "go", "build", "-overlay", filepath.Join(folder, "overlay.json"), "-o", exe,
			"./cmd/vramyard")
	}
	built := err == nil
	if built {
		args := []string{"check", "--planted", "--seed", strconv.FormatInt(f.seed, 10)}
		for _, name := range []string{"strategies", "ops", "tests"} {
			if flag := cmd.Flags().Lookup(name); flag.Changed {
				args = append(args, "--"+name, flag.Value.String())
			}
		}
		err = runChild(ctx, cmd, "", exe, args...)
	}
	if ctx.Err() != nil {
		return interrupted("the search for planted bugs was interrupted")
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && built && exit.ExitCode() == exitFailed {
		return failure{fmt.Errorf("--planted: %w", err)} // the program has named the bugs that it missed
	}
	return err
}

// runChild runs a program in a folder, "" for the current one, with the output of this one. If ctx
// ends, the program is interrupted, and killed if that does not end it. On Linux it also ends with
// this program.
func runChild(ctx context.Context, cmd *cobra.Command, folder, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = folder
	c.Stdout, c.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = childPatience
	endWithParent(c)
	runtime.LockOSThread() // the kernel counts the end of the starting thread as the parent's
	defer runtime.UnlockOSThread()
	if err := c.Run(); err != nil {
		return fmt.Errorf("--planted: %s %s: %w", filepath.Base(name), args[0], err)
	}
	return nil
}

// childPatience is the time limit for an interrupted program to end: it first shrinks its current
// counterexample.
const childPatience = time.Minute

// sourceAtHand returns the root of the module, and reports whether there is a Go toolchain and the
// program runs in a folder of the module.
func sourceAtHand() (root string, ok bool) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", false
	}
	file := string(bytes.TrimSpace(out))
	text, err := os.ReadFile(file)
	return filepath.Dir(file), err == nil && bytes.HasPrefix(text, []byte("module "+module+"\n"))
}

// writeVerdicts writes the table of bugs and the number of caught ones. The error repeats it,
// if there are any that were not, that did not shrink, or that were not looked for.
func writeVerdicts(stdout io.Writer, verdicts []check.Verdict, all int) error {
	caught, small := 0, 0
	for _, v := range verdicts {
		if v.Caught {
			caught++
		}
		if v.Caught && v.Small() {
			small++
		}
	}
	t := report.NewSheet("", verdictColumns, verdicts)
	err := new(outputs).write(stdout, func(w io.Writer) error {
		fmt.Fprintf(w, "%s\ncaught %d of %d\n", t.Terminal(w), caught, len(verdicts))
		if left := all - len(verdicts); left > 0 {
			fmt.Fprintf(w, "%d of %d bugs were not looked for: the search ends after %v\n", left, all, plantedBudget)
		}
		return nil
	})
	switch n := len(verdicts); {
	case err != nil:
		return err
	case caught < n:
		return failure{fmt.Errorf("%d of %d planted bugs were missed", n-caught, n)}
	case small < n:
		return failure{fmt.Errorf("%d of %d counterexamples are more than twice as long as they need be", n-small, n)}
	case n < all:
		return failure{fmt.Errorf("%d of %d planted bugs were not looked for within %v", all-n, all, plantedBudget)}
	}
	return nil
}

// verdictColumns are the columns of the planted bugs.
var verdictColumns = []report.ColumnOf[check.Verdict]{
	report.Texts("bug", "", func(v check.Verdict) string { return string(v.Bug.ID) }),
	report.Texts("strategy", "", func(v check.Verdict) string { return v.Bug.Setting.Strategy }),
	report.Texts("invariant", "", func(v check.Verdict) string { return fmt.Sprint(v.Broken) }),
	report.Texts("sequences", "", func(v check.Verdict) string { return fmt.Sprint(v.Sequences) }).AtRight(),
	report.Texts("operations", "", func(v check.Verdict) string { return fmt.Sprint(v.Shrunk) }).AtRight(),
	report.Texts("enough", "", func(v check.Verdict) string { return fmt.Sprint(v.Minimal) }).AtRight(),
	report.Texts("verdict", "", func(v check.Verdict) string {
		switch {
		case !v.Caught:
			return "missed, want " + strings.Join(v.Bug.Breaks, " or ")
		case !v.Small():
			return "caught, not shrunk"
		}
		return "caught"
	}),
}
