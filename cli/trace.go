package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/parquet"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/internal/nearest"
)

func newTrace(catalogue setting.Catalogue) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Inspect, convert, cut, compare, change and generate traces",
		Args:  knownCommand,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("missing command: want info, convert, cut, diff, gen, perturb or classes")
		},
	}
	c.AddCommand(newTraceInfo(), newTraceConvert(), newTraceCut(), newTraceDiff(), newTraceGen(), newTracePerturb(),
		newTraceClasses(catalogue))
	return c
}

// toUsage describes the flag --to.
var toUsage = "format of the output: " + strings.Join(writable(), ", ")

// writable returns the names of the formats that can be written.
func writable() []string {
	var names []string
	for _, f := range formats.Writable() {
		names = append(names, f.Name)
	}
	return names
}

func newTraceConvert() *cobra.Command {
	var to, pools string
	var source formats.Options
	c := &cobra.Command{
		Use:   "convert TRACE... OUT",
		Short: "Convert a trace to another format, or join snapshots of one run",
		Long: `Write a trace in another form. A TRACE is a file of any format that docs/traces.md lists.
Without --to, the name of OUT decides: CSV if it ends in .csv, .csv.gz or .csv.zst, Parquet if it
ends in .parquet, and text, which is made to be read and edited by hand, if it ends in .trace or
.txt, each also with .gz or .zst, or has no ending. Any other ending is an error.

The format minimalloc has only lifetimes and sizes. An event that another format cannot hold is an error.

Several TRACEs are memory snapshots that one process of PyTorch wrote while it ran, in any order. They are joined: OUT has
each request once, and a conf line where the recorded settings of the allocator differ. Each snapshot must begin before
the previous one ends. docs/traces.md says more; the ranks of a run are for "vramyard fleet".

With --pools share every request of a private pool goes to the pool that was begun first; with --pools merge it goes to
the ordinary pool. --pools largest-first also moves the captures of graphs: the one that needs the most comes first.
--pools prime requests its need in the shared pool before the first capture, and frees it at once. --pools use_on_oom or
no_split gives every pool that option of torch.cuda.MemPool.`,
		Example: "  vramyard trace convert run.pickle run.trace\n" +
			"  vramyard trace convert loading.pickle serving.pickle run.trace",
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, out := args[:len(args)-1], args[len(args)-1]
			if err := argument(out).check(in...); err != nil {
				return err
			}
			form, err := traceForm(to, out)
			if err != nil {
				return err
			}
			t, err := openJoined(cmd, in, source)
			if err == nil && cmd.Flags().Changed("pools") {
				if t, err = trace.Repool(t, pools); err != nil {
					err = flagError("pools", err)
				}
			}
			if err != nil {
				return err
			}
			return fileio.Write(out, document(cmd.OutOrStdout()), func(w io.Writer) error {
				return form.Write(w, walking(cmd, "writing", t))
			})
		},
	}
	addSource(c, &source)
	c.Flags().StringVar(&to, "to", "", toUsage)
	c.Flags().StringVar(&pools, "pools", "", "change the private pools: share one among all, merge them into the "+
		"ordinary pool, share one with the captures largest-first, prime it for them, or add the option use_on_oom or "+
		"no_split")
	return c
}

// openJoined opens a trace, or joins several snapshots of one run.
func openJoined(cmd *cobra.Command, paths []string, o formats.Options) (trace.Source, error) {
	if len(paths) == 1 {
		return openSource(paths[0], reading(cmd, paths[0], o), cmd.InOrStdin())
	}
	if o.Dialect != "" {
		return nil, flagError("dialect", errors.New("only snapshots of PyTorch can be joined"))
	}
	collectWithin(o.Memory)
	o.Watch = begin(cmd, stage{what: fmt.Sprintf("reading %d snapshots", len(paths)), unit: "bytes"}).reached
	return formats.Join(paths, o)
}

// errPacked means that a compressed format cannot be compressed again.
var errPacked = errors.New("columns in Parquet are compressed already: want a name that ends in .parquet")

// traceForm returns the requested format.
func traceForm(to, path string) (formats.Format, error) {
	if to == "" {
		switch ending := endingOf(path); ending {
		case ".csv":
			to = "csv"
		case ".parquet":
			to = parquet.Format
		case "", ".trace", ".txt":
			to = "text"
		default:
			return formats.Format{}, fmt.Errorf("%s: no trace is written as %s: want a name that ends in .csv, .trace or "+
				".txt, each also with .gz or .zst, "+
				"or in .parquet, or --to with one of %s", path, ending, strings.Join(writable(), ", "))
		}
	}
	if to == parquet.Format && endingOf(path) != strings.ToLower(filepath.Ext(path)) {
		return formats.Format{}, errPacked
	}
	for _, f := range formats.Writable() {
		if f.Name == to {
			return f, nil
		}
	}
	return formats.Format{}, flagError("to", fmt.Errorf("unknown form %q: %s", to, nearest.Want(to, writable())))
}
