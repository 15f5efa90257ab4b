package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/tune"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

type tuneFlags struct {
	catalogue                  setting.Catalogue
	strategy, config, settings string
	deviceFlags
	source formats.Options
	points int
	store  storeFlag
	files  outputs
}

func newTune(catalogue setting.Catalogue) *cobra.Command {
	f := tuneFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "tune --strategy NAME [TRACE...]",
		Short: "Search the settings of a strategy for least memory and least time",
		Long: `Search the grid of a strategy's settings ("vramyard strategies NAME" shows it) for the
points with the smallest device for the traces and with the least time, and print them with the
effect of each setting.

A grid of more than --points points is searched by descent from the preset: each round
tries every single change and takes the helpful ones, together if that is better, until no change
helps. A round is always completed. Without TRACE, all traces inside the program are used.`,
		RunE: f.run,
	}
	c.Flags().StringVar(&f.strategy, "strategy", "", "strategy to tune, "+oneNamedUsage)
	addConfig(c, &f.config, "fixed settings, as a JSON object; they replace the preset's")
	c.Flags().StringVar(&f.settings, "settings", "", "settings to vary, separated by commas (default: all that "+
		"have a grid)")
	c.Flags().IntVar(&f.points, "points", 200, "points of the grid to search, without the single changes of the "+
		"best one")
	addPart(c, &f.source)
	f.addDevice(c, "its capacity is not used, because the smallest one is searched")
	f.addSim(c, simShapeUsage)
	addStore(c, &f.store, "runs that are computed only once; the finalists are always timed again")
	f.files.addFigures(c, "tables")
	mustHave(c, "strategy")
	return c
}

func (f *tuneFlags) run(cmd *cobra.Command, args []string) error {
	if f.points < 1 {
		return flagError("points", errNone)
	}
	named, err := strategyOf(f.strategy, f.config)
	if err != nil {
		return err
	}
	if _, err := named.lookup(f.catalogue, "strategy", f.config); err != nil {
		return err
	}
	if err := f.files.check(args...); err != nil {
		return err
	}
	traces, err := openAll(cmd, args, f.source, openTrace)
	if err != nil {
		return err
	}
	o := tune.Options{Points: f.points, Memory: heapLeft()}
	if o.Device, _, err = f.shape(); err != nil {
		return err
	}
	if f.settings != "" {
		o.Knobs = strings.Split(f.settings, ",")
	}
	if o.Cells, err = f.store.cells(cmd, replay.SimTarget(o.Device)); err != nil {
		return err
	}
	p := begin(cmd, stage{unit: "runs"})
	o.Replayed, o.Progress = p.replayed, func(done, known int) { p.reached(int64(done), int64(known)) }
	ctx, done := untilInterrupt(cmd)
	r, err := tune.Tune(ctx, traces, f.catalogue, named.name, json.RawMessage(named.config), o)
	done()
	if r == nil {
		return err
	}
	f.files.figures(r, report.TuneTable(r))
	return f.files.conclude(cmd, err, true, fmt.Sprintf("points evaluated, and timed once: %d", r.Evaluated),
		func(w io.Writer) error { return report.TuneTables(w, r) })
}
