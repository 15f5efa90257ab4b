package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/corpus"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/internal/units"
)

func newCorpusLint(catalogue setting.Catalogue) *cobra.Command {
	var source formats.Options
	c := &cobra.Command{
		Use:   "lint TRACE...",
		Short: "Check traces for defects",
		Long: `Check traces of any format for defects, one line for each kind of defect with the first place and the number of occurrences:

  read     a line that the format does not permit, such as a free of an unknown block in a text trace, ends the check of
           the file; a last line without a line end
  balance  blocks that are never freed (a note), frees of another size, states that differ from the final blocks
  ghost    frees of unknown or freed blocks, and blocks whose address is used again before they are freed
  overlap  recorded addresses of live blocks overlap (logs of RMM and the profilers, snapshots of PyTorch)
  time     times that go back, or that only some events have
  marks    a part of the program that ends without a begin or the reverse, settings that change at a mark that the trace
           lacks

The exit status is 1 if there is an error or a warning, and 2 if a file cannot be read at all.`,
		Example: "  vramyard corpus lint run.pickle\n  vramyard corpus lint examples/incidents/*.trace.gz",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := onceFromStdin(args); err != nil {
				return err
			}
			return lint(cmd, catalogue, args, source)
		},
	}
	addSource(c, &source)
	return c
}

// lint checks traces. It continues after an unreadable file.
func lint(cmd *cobra.Command, catalogue setting.Catalogue, paths []string, o formats.Options) error {
	var unreadable []error
	failed := 0
	for _, path := range paths {
		l := &corpus.Lint{Name: path}
		if err := lintOne(cmd, catalogue, l, o); err != nil {
			unreadable = append(unreadable, err)
		}
		if l.Failed() {
			failed++
		}
		err := fileio.Write("-", cmd.OutOrStdout(), func(w io.Writer) error {
			for _, f := range l.Findings {
				if _, err := fmt.Fprintln(w, oneLine(errors.New(f.String()))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		err := fmt.Errorf("%d of %s with findings", failed, units.Several(len(paths), "trace"))
		unreadable = append(unreadable, failure{err})
	}
	return errors.Join(unreadable...)
}

func lintOne(cmd *cobra.Command, catalogue setting.Catalogue, l *corpus.Lint, o formats.Options) error {
	o = reading(cmd, l.Name, o)
	o.Warn, o.Doubt = l.Warn, l.Doubt
	t, err := openSource(l.Name, o, cmd.InOrStdin())
	if err != nil {
		return l.Broken(err)
	}
	marks, place := recordedMarks(catalogue, t.Head(), l.Name)
	return l.Walk(walking(cmd, "checking", t), marks, place)
}

// recordedMarks returns the marks at which the settings in a header change, and the line that has
// them. Other commands judge the settings themselves.
func recordedMarks(catalogue setting.Catalogue, head trace.Head, path string) (marks []string, place string) {
	for i, p := range head.Header.Meta {
		if p.Key != torch.KeyConfig {
			continue
		}
		if setup, err := catalogue.Lookup(cachingName, json.RawMessage(p.Value)); err == nil {
			return setup.Marks(), head.PairPlace(i, path)
		}
	}
	return nil, ""
}
