package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
)

type offlineFlags struct {
	files    outputs
	source   formats.Options
	capacity string
	steps    uint64
	time     time.Duration
	freeAt   string
}

func newOffline() *cobra.Command {
	f := offlineFlags{steps: offline.DefaultSteps}
	c := &cobra.Command{
		Use:   "offline [TRACE...]",
		Short: "Compute the offline-optimal packing of a trace",
		Long: `Compute the least memory for a trace that is known in advance: every allocation gets one offset,
and no two live allocations overlap. Greedy placements come first, then a search that starts from
the lowest of them. Streams and private pools are ignored.

The search is bounded by steps, so the same trace gives the same answer on every machine. With
--time the answer depends on the machine. Without TRACE, all traces inside the program are used.`,
		Example: `  vramyard offline A.1048576.csv --capacity 1MiB --offsets placed.csv`,
		RunE:    f.run,
	}
	c.Flags().StringVar(&f.capacity, "capacity", "", `stop at a placement of at most this size, such as "24GiB" (default: search for the lowest)`)
	c.Flags().Uint64Var(&f.steps, "steps", f.steps, "limit of the search, as a number of examined buffers and ranges")
	c.Flags().DurationVar(&f.time, "time", 0, `end the search after this time, such as "30s" (default: by steps alone)`)
	addSource(c, &f.source)
	addFreeAt(c, &f.freeAt)
	f.files.addFigures(c, "tables")
	f.files.add(c, "offsets",
		`also write the offset of every allocation to this file, in MiniMalloc's format; "-" for standard output`)
	return c
}

// limits reads the flags that bound a search.
func (f *offlineFlags) limits(cmd *cobra.Command) (l offline.Limits, err error) {
	if f.capacity != "" {
		if l.Capacity, err = parseCapacity(f.capacity); err != nil {
			return l, err
		}
	}
	if l.Steps = f.steps; l.Steps == 0 {
		return l, flagError("steps", errNone)
	}
	if l.Time = f.time; l.Time < 0 || l.Time == 0 && cmd.Flags().Changed("time") {
		return l, flagError("time", errors.New("want more than 0s"))
	}
	return l, nil
}

func (f *offlineFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.files.check(args...); err != nil {
		return err
	}
	limits, err := f.limits(cmd)
	if err != nil {
		return err
	}
	at, err := parseFreeAt(f.freeAt)
	if err != nil {
		return err
	}
	if f.files.wanted("offsets") && len(args) != 1 {
		return flagError("offsets", errors.New("want one trace"))
	}
	traces, err := openAll(cmd, args, f.source, openTrace)
	if err != nil {
		return err
	}
	r := &offline.Report{Schema: offline.Schema, Provenance: provenance.Read(), FreeAt: at, Limits: limits}
	var placed func(w io.Writer) error
	bar := begin(cmd, stage{unit: "traces", total: int64(len(traces))})
	ctx, done := untilInterrupt(cmd)
	defer done()
	events, all := 0, 0
	for _, t := range traces {
		all += len(t.Events)
	}
	for _, t := range traces {
		p, err := offline.Of(t, offline.Options{FreeAt: at})
		if err != nil {
			return err
		}
		s, sum := offline.Best(ctx, p, limits)
		head := t.Head().Header
		if err := p.Validate(s); err != nil {
			return fmt.Errorf("%s: the placement that was found is wrong: %w", head.Name, err)
		}
		sum.Trace, sum.Hash, sum.Gap = head.Name, head.Hash, torch.GapOf(t)
		r.Traces = append(r.Traces, sum)
		placed = func(w io.Writer) error { return p.WriteCSV(w, s) }
		events += len(t.Events)
		bar.estimated(float64(events) / float64(max(all, 1)))
		bar.step()
		if ctx.Err() != nil {
			return f.files.finished(cmd.OutOrStdout(), fmt.Sprintf("%d of %d traces, the search of the last is cut short",
				len(r.Traces), len(traces)),
				func(w io.Writer) error { return report.OfflineTables(w, r) })
		}
	}
	f.files.figures(r, report.OfflineTable(r))
	f.files.of("offsets").fill = placed
	return f.files.write(cmd.OutOrStdout(), func(w io.Writer) error { return report.OfflineTables(w, r) })
}
