package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/internal/budget"
)

type diffFlags struct {
	failIf []string
	files  outputs
	all    bool
	memory device.Size
}

func newDiff() *cobra.Command {
	var f diffFlags
	c := &cobra.Command{
		Use:   "diff A.json B.json",
		Short: "Compare two results; exit 1 on a regression",
		Long: `List the figures that differ between two results of the same command, written by --json of compare,
replay, bench, tune, offline, verify or whatif. A is before, B is after; "-" is standard input.

Runs are matched by trace, strategy and configuration. Measured times are shown and marked, but do
not count as differences.

--fail-if is a condition that makes the command fail, and may be repeated:
  min_capacity_bytes>+2%           B needs a card more than 2 % larger than A, or does not complete
  peak_reserved_bytes>+100MiB      B reserves at least 100 MiB more
  oom_count>0                      a request of B finds no memory
  ns_per_op>+50%@caching*@llama*   only where strategy and trace match
docs/diff.md has the grammar and the meaning of missing values.

The exit status is 1 if a condition holds, 2 if a result cannot be read, and 0 otherwise, even if
figures differ.`,
		Example: "  vramyard diff base.json head.json --fail-if 'min_capacity_bytes>+2%'",
		Args:    cobra.ExactArgs(2),
		RunE:    f.run,
	}
	c.Flags().StringArrayVar(&f.failIf, "fail-if", nil, `fail if this holds for a run, such as "min_capacity_bytes>+2%"`)
	f.files.add(c, "json", `also write the differences as JSON to this file, "-" for standard output instead of a table`)
	addMemory(c, &f.memory)
	c.Flags().BoolVar(&f.all, "all", false, "show figures that are the same too")
	return c
}

func (f *diffFlags) run(cmd *cobra.Command, args []string) error {
	if err := onceFromStdin(args); err != nil {
		return err
	}
	if err := f.files.check(args...); err != nil {
		return err
	}
	var conditions []diff.Condition
	for _, text := range f.failIf {
		c, err := diff.ParseCondition(text)
		if err != nil {
			return flagError("fail-if", err)
		}
		conditions = append(conditions, c)
	}
	var results [2]*diff.Result
	for i, path := range args {
		var err error
		if results[i], err = readFile(cmd, path, f.memory, readResult); err != nil {
			return err
		}
	}
	d, err := diff.Compare(results[0], results[1], f.all)
	if err != nil {
		return err
	}
	if err := d.Judge(conditions); err != nil {
		return flagError("fail-if", err)
	}
	stdout := cmd.OutOrStdout()
	f.files.json(d)
	err = f.files.write(stdout, func(w io.Writer) error { return report.ResultDiff(w, args[0], args[1], d) })
	if n := d.Violated(); n > 0 {
		err = errors.Join(failure{fmt.Errorf("%s against %s: %d of %d conditions violated", args[1], args[0], n,
			len(conditions))}, err)
	}
	return err
}

// readResult reads a result. Its errors begin with the name of the file.
func readResult(name string, in io.Reader, memory *budget.Budget) (*diff.Result, error) {
	r, err := diff.Read(in, memory)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}
