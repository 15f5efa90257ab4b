package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

type topFlags struct {
	source formats.Options
	rows   int
	files  outputs
}

func newTop() *cobra.Command {
	f := topFlags{rows: 20}
	c := &cobra.Command{
		Use:   "top FILE",
		Short: "List the owners of memory at the peak and at the failure",
		Long: `Show which parts of a program hold memory at the peak of live bytes, and when its last request was
refused: by call site where FILE has stacks, by tag where its allocations have tags, else by size;
and by category (weights, gradients, optimizer, activations) as far as stacks or tags show them.
Bytes are requested bytes. A snapshot without a history shows the memory when it
was written. docs/metrics.md defines call sites and categories.

"vramyard view FILE" shows the same as a flame graph.`,
		Example: "  vramyard top snapshot.pickle\n  vramyard top --folded stacks.txt snapshot.pickle",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	c.Flags().IntVar(&f.rows, "rows", f.rows, "most rows of the table of holders; JSON has all")
	addSource(c, &f.source)
	f.files.add(c, "json",
		`also write all holders and stacks as JSON to this file, "-" for standard output instead of tables`)
	f.files.add(c, "folded",
		`also write the stacks of the peak to this file, in the folded form of flame graph tools, "-" for standard output instead of tables`)
	return c
}

func (f *topFlags) run(cmd *cobra.Command, path string) error {
	if err := f.files.check(path); err != nil {
		return err
	}
	if f.rows < 1 {
		return flagError("rows", errNone)
	}
	stacks := allocationStacks{}
	src, err := stacks.open(path, reading(cmd, path, f.source), cmd.InOrStdin())
	if err != nil {
		return err
	}
	r, err := topOf(walking(cmd, "surveying", src), stacks[src])
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f.files.json(r)
	f.files.of("folded").fill = r.Peak.WriteFolded
	return f.files.write(cmd.OutOrStdout(), func(w io.Writer) error { return report.TopTables(w, r, f.rows) })
}

// topOf measures who holds memory. stacks is nil if they are unknown.
func topOf(src trace.Source, stacks *postmortem.Stacks) (*top.Report, error) {
	var of top.Stacks
	if stacks != nil {
		of = stacks
	}
	r, err := top.Measure(src, of)
	if err == nil {
		r.Provenance = provenance.Read()
	}
	return r, err
}
