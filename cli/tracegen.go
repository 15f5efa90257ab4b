package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/internal/nearest"
)

func newTraceGen() *cobra.Command {
	c := &cobra.Command{
		Use:   "gen NAME [flags] OUT",
		Short: "Generate the trace of a reference workload",
		Long: `Generate the trace of a reference workload; the same seed gives the same trace on every machine.
docs/workloads.md defines the workloads. A mark precedes each part: "fill", "settle" and "churn";
benchmarks time the last one. "vramyard trace gen NAME --help" shows the parameters.

Without --to, the name of OUT decides: CSV if it ends in .csv, .csv.gz or .csv.zst, Parquet if it
ends in .parquet, text if it ends in .trace or .txt, each also with .gz or .zst, or has no ending.
Only Parquet files hold more than 33,554,432 events.`,
		Example: "  vramyard trace gen w1 --live 10000 w1.csv.zst\n  vramyard trace gen loguniform --least 16KiB " +
			"--most 1MiB -",
		// An unknown workload is reported as such, and not its flags.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("missing workload: want one of " + strings.Join(generated(), ", "))
			}
			return fmt.Errorf("unknown workload %q: %s", args[0], nearest.Want(args[0], generated()))
		},
	}
	for _, s := range workload.All() {
		c.AddCommand(newTraceGenOf(s))
	}
	c.AddCommand(newTraceGenServing())
	return c
}

// generated returns the names of the workloads that have a command.
func generated() []string { return append(workload.Names(), "serving") }

// newTraceGenOf returns the command that generates workloads of one shape. It has a flag for
// each parameter of the shape, under the parameter's name.
func newTraceGenOf(s workload.Shape) *cobra.Command {
	p := s.Default
	least, most := p.Least.String(), p.Most.String()
	var to string
	c := &cobra.Command{
		Use:   s.Name + " OUT",
		Short: s.Doc,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Least, err = sizeFlag("least", least); err != nil {
				return err
			}
			if p.Most, err = sizeFlag("most", most); err != nil {
				return err
			}
			return generate(cmd, s, p, to, args[0])
		},
	}
	f := c.Flags()
	if p.Live > 0 {
		f.IntVar(&p.Live, "live", p.Live, "blocks live at once")
	}
	if p.Pairs > 0 {
		f.IntVar(&p.Pairs, "pairs", p.Pairs, "pairs of a free and an allocation in the churn")
	}
	if p.Steps > 0 {
		f.IntVar(&p.Steps, "steps", p.Steps, "steps of the training")
	}
	if p.Most > 0 {
		f.StringVar(&least, "least", least, "smallest size of a block")
		f.StringVar(&most, "most", most, "bound of the sizes")
	}
	f.Uint64Var(&p.Seed, "seed", p.Seed, "seed of the random numbers")
	f.StringVar(&to, "to", "", toUsage)
	return c
}

// sizeFlag reads the value of a flag that is a number of bytes.
func sizeFlag(flag, value string) (device.Size, error) {
	n, err := device.ParseSize(value)
	return n, flagError(flag, err)
}

func generate(cmd *cobra.Command, s workload.Shape, p workload.Params, to, path string) error {
	if err := argument(path).check(); err != nil {
		return err
	}
	form, err := traceForm(to, path)
	if err != nil {
		return err
	}
	w, err := s.New(p)
	if err != nil {
		return paramError(err)
	}
	if err := checkEvents(w.Name(), w.Events(), form); err != nil {
		return err // before the operations are generated
	}
	return writeGenerated(cmd, w.Source(), form, path)
}

// paramError names the flag of an invalid parameter.
func paramError(err error) error {
	var wrong *workload.ParamError
	if errors.As(err, &wrong) {
		return flagError(wrong.Param, wrong.Why)
	}
	return err
}

// checkEvents refuses a trace that is too long for its format.
func checkEvents(name string, n int, form formats.Format) error {
	if n > trace.DefaultMaxEvents && form.Name != parquet.Format {
		return fmt.Errorf("workload %s: %d events: as %s a trace that can be read back holds at most %d",
			name, n, form.Name, trace.DefaultMaxEvents)
	}
	return nil
}

func writeGenerated(cmd *cobra.Command, src trace.Source, form formats.Format, path string) error {
	src = walking(cmd, "generating", src)
	return fileio.Write(path, document(cmd.OutOrStdout()), func(out io.Writer) error { return form.Write(out, src) })
}
