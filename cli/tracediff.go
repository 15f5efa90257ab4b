package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

func newTraceDiff() *cobra.Command {
	var files outputs
	var source formats.Options
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two traces",
		Long: `Compare two traces: headers, the first event that differs, counts of events by kind, allocations
that only one of them has, and live memory. Names, compression and formats of the files do not
count.

Allocations are matched by order: the n-th of a size on a stream stands for the n-th of that size
and stream in the other trace; and by their ids, where both traces give each id only once.

The exit status is 0 if the traces are equal, 1 if they differ, and 2 if one cannot be read.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := onceFromStdin(args); err != nil {
				return err
			}
			if err := files.check(args...); err != nil {
				return err
			}
			var traces [2]*trace.Trace
			for i, a := range args {
				var err error
				if traces[i], err = openTrace(a, reading(cmd, a, source), cmd.InOrStdin()); err != nil {
					return err
				}
			}
			begin(cmd, stage{what: "comparing"})
			d := trace.Compare(traces[0], traces[1])
			stdout := cmd.OutOrStdout()
			files.json(d)
			err := files.write(stdout, func(w io.Writer) error { return report.TraceDiff(w, args[0], args[1], d) })
			if !d.Equal {
				err = errors.Join(failure{fmt.Errorf("%s and %s differ", args[0], args[1])}, err)
			}
			return err
		},
	}
	addSource(c, &source)
	files.add(c, "json", `also write the differences as JSON to this file, "-" for standard output instead of text`)
	return c
}
