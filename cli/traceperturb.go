package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/fileio"
)

type perturbFlags struct {
	source                     formats.Options
	drop, insert, resize, swap string
	to                         string
	change                     workload.Perturbation
}

func newTracePerturb() *cobra.Command {
	var f perturbFlags
	c := &cobra.Command{
		Use:   "perturb TRACE OUT [--drop 1%] [--insert 1%] [--resize 1%] [--swap] [--insert-eval N]",
		Short: "Change a trace at random places",
		Long: `Write a trace with random deviations from the recorded run, to test strategies that expect a
repetition. Each rate is the share of requests that are dropped with their blocks, preceded by
another request, resized to between half and twice their size, or swapped with the next event.
--insert-eval inserts requests in the middle of the run, as an evaluation makes them.
docs/traces.md has the exact rules. The same seed gives the same trace on every machine.`,
		Example: "  vramyard trace perturb --drop 1% --insert 1% --resize 1% --swap cpu_unet_train unet.trace\n" +
			"  vramyard trace perturb --insert-eval 200 --seed 7 run.csv eval.csv",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1]) },
	}
	addSource(c, &f.source)
	for _, r := range []struct {
		rate        *string
		name, usage string
	}{
		{&f.drop, "drop", "share of requests to drop, such as 1% or 0.01"},
		{&f.insert, "insert", "share of requests before which another one is inserted"},
		{&f.resize, "resize", "share of requests to resize"},
		{&f.swap, "swap", "share of requests to swap with the next event; without a value 1%"},
	} {
		c.Flags().StringVar(r.rate, r.name, "", r.usage)
	}
	c.Flags().Lookup("swap").NoOptDefVal = "1%"
	c.Flags().IntVar(&f.change.Eval, "insert-eval", 0, "number of requests of an evaluation in the middle")
	c.Flags().Uint64Var(&f.change.Seed, "seed", 1, "seed of the choices")
	c.Flags().StringVar(&f.to, "to", "", toUsage)
	c.MarkFlagsOneRequired("drop", "insert", "resize", "swap", "insert-eval")
	return c
}

func (f *perturbFlags) run(cmd *cobra.Command, in, out string) error {
	if err := argument(out).check(in); err != nil {
		return err
	}
	form, err := traceForm(f.to, out)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		name, text string
		rate       *float64
	}{
		{"drop", f.drop, &f.change.Drop}, {"insert", f.insert, &f.change.Insert},
		{"resize", f.resize, &f.change.Resize}, {"swap", f.swap, &f.change.Swap},
	} {
		if *r.rate, err = parseShare(r.text); err != nil {
			return flagError(r.name, err)
		}
	}
	if err := f.change.Check(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	t, err := openSource(in, reading(cmd, in, f.source), cmd.InOrStdin())
	if err != nil {
		return err
	}
	changed, err := workload.Perturb(walking(cmd, "changing", t), f.change)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return fileio.Write(out, document(cmd.OutOrStdout()), func(w io.Writer) error {
		return form.Write(w, walking(cmd, "writing", changed))
	})
}

// parseShare reads a share such as "1%" or "0.01"; the empty text is 0.
func parseShare(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, fmt.Errorf("%q: want a share from 0%% to 100%%", text)
	}
	return x, nil
}
