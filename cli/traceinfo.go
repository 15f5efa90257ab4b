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

type infoFlags struct {
	source formats.Options
	files  outputs
}

func newTraceInfo() *cobra.Command {
	var f infoFlags
	c := &cobra.Command{
		Use:   "info TRACE...",
		Short: "Summarize a trace",
		Long: `Summarize a trace: sizes, streams, lifetimes, similarity of steps, and information missing in the
file. A TRACE is a file of any format in docs/traces.md; the format is detected from the content.
For a file with several devices or allocators the parts are listed; --part selects one.

An unreadable file does not stop the others: the exit status is then 1, and 2 if it is the only
one.`,
		Args: cobra.MinimumNArgs(1),
		RunE: f.run,
	}
	addSource(c, &f.source)
	f.files.add(c, "json", `write the figures as JSON to this file, "-" for standard output`)
	return c
}

func (f *infoFlags) run(cmd *cobra.Command, args []string) error {
	if err := errors.Join(onceFromStdin(args), f.files.check(args...)); err != nil {
		return err
	}
	contents := []any{} // a *trace.Info of a trace, a *trace.PartsError of several
	tables := make([]func(w io.Writer) error, 0, len(args))
	for _, path := range args {
		info, err := f.describe(cmd, path)
		several, ok := errors.AsType[*trace.PartsError](err)
		switch {
		case ok:
			contents = append(contents, several)
			tables = append(tables, func(w io.Writer) error { return report.TraceParts(w, path, several) })
		case err == nil:
			contents = append(contents, info)
			tables = append(tables, func(w io.Writer) error { return report.TraceInfo(w, info) })
		case len(args) == 1:
			return err
		default:
			tell(cmd.ErrOrStderr(), "vramyard: %s", oneLine(advised(err)))
		}
	}
	f.files.json(contents)
	err := f.files.write(cmd.OutOrStdout(), func(w io.Writer) error {
		for _, write := range tables {
			if err := write(w); err != nil {
				return err
			}
		}
		return nil
	})
	if bad := len(args) - len(contents); bad > 0 {
		err = errors.Join(failure{fmt.Errorf("%d of %d files cannot be read", bad, len(args))}, err)
	}
	return err
}

func (f *infoFlags) describe(cmd *cobra.Command, path string) (*trace.Info, error) {
	t, err := openSource(path, reading(cmd, path, f.source), cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	info, err := trace.Describe(walking(cmd, "surveying", t))
	return &info, err
}
