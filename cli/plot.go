package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot/vg"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/internal/fileio"
)

type plotFlags struct {
	catalogue setting.Catalogue
	chart.Options
	out, size, strategies string
	font                  float64
	memory                device.Size
}

func newPlot(catalogue setting.Catalogue) *cobra.Command {
	f := plotFlags{catalogue: catalogue}
	var kinds strings.Builder
	for _, k := range chart.Kinds() {
		fmt.Fprintf(&kinds, "  %-9s of %s: %s\n", k.Name, strings.Join(k.Commands, ", "), k.Doc)
	}
	asJSON, asCSV := chart.Drawn()
	c := &cobra.Command{
		Use:   "plot --out FIGURE RESULT...",
		Short: "Draw results as a figure for a paper",
		Long: "Draw results as a figure for a paper. A RESULT is what --json of " + asJSON +
			"\nwrites, or --csv of " + asCSV +
			`; "-" is standard input. FIGURE ends in .svg, .pdf or .png.

The kind of the figure follows from the results, and --kind chooses another that they allow:
` + kinds.String() + `
Several results of replays of one trace are drawn together, and so are several results of another
command. Results of compare, whatif and offline can be combined.
docs/plot.md shows each kind.`,
		Example: "  vramyard plot --out capacity.pdf result.json\n" +
			"  vramyard plot --out memory.pdf --size two caching.json bfc.json\n" +
			"  vramyard plot --out time.svg --trace w1 --metric latency.p99_ns bench.json",
		Args: cobra.MinimumNArgs(1),
		RunE: f.run,
	}
	c.Flags().StringVar(&f.out, "out", "", "write the figure to this `file`; the extension selects the format")
	c.Flags().StringVar(&f.Kind, "kind", "", "kind of the figure (default: the first that the results allow)")
	c.Flags().StringVar(&f.Metric, "metric", "", "figure to draw, by its name in the results (default: the kind's own)")
	c.Flags().StringVar(&f.Trace, "trace", "", "trace or workload to draw, for results on several")
	c.Flags().StringVar(&f.strategies, "strategies", "", "strategies to draw, in this order, separated by commas "+
		"(default: all)")
	addMemory(c, &f.memory)
	c.Flags().StringVar(&f.size, "size", "one",
		`width of "one" or "two" columns, or in cm, with the height if that is given: "12" or "8.5x6"`)
	c.Flags().Float64Var(&f.font, "font", 8, "size of the text in points")
	mustHave(c, "out")
	return c
}

func (f *plotFlags) run(cmd *cobra.Command, args []string) error {
	if err := onceFromStdin(args); err != nil {
		return err
	}
	if err := (&outputs{[]*output{{flag: "out", path: f.out}}}).check(args...); err != nil {
		return err
	}
	format, err := chart.FormatOf(f.out)
	if err != nil {
		return flagError("out", err)
	}
	page := chart.Page{Font: vg.Length(f.font)}
	if page.Width, page.Height, err = chart.ParseSize(f.size); err != nil {
		return flagError("size", err)
	}
	if !(f.font >= 4 && f.font <= 30) {
		return flagError("font", errors.New("want 4 to 30 points"))
	}
	if cmd.Flags().Changed("strategies") {
		all, err := strategyArgs(f.strategies, "")
		if err != nil {
			return err
		}
		for _, a := range all {
			f.Strategies = append(f.Strategies, a.String())
		}
	}
	f.Number = colors(f.catalogue)
	var sources []*chart.Source
	for _, path := range args {
		s, err := readFile(cmd, path, f.memory, chart.Read)
		if err != nil {
			return err
		}
		sources = append(sources, s)
	}
	c, err := chart.Draw(sources, f.Options)
	if err != nil {
		return err
	}
	return fileio.Write(f.out, nil, func(w io.Writer) error { return c.Write(w, format, page) })
}
