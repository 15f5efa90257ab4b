package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/show/report"
)

// logs returns the paths of the logs, and with --batch the batch size of each.
func (f *rematFlags) logs(args []string) (paths []string, batches []int, err error) {
	if f.batch == "" {
		return args, nil, nil
	}
	for _, arg := range args {
		size, path, ok := strings.Cut(arg, "=")
		n, err := strconv.Atoi(size)
		if !ok || err != nil || n < 1 || path == "" {
			return nil, nil, fmt.Errorf("%s: want BATCH=FILE with --batch, such as 4=%s", arg, "step.log.gz")
		}
		paths, batches = append(paths, path), append(batches, n)
	}
	return paths, batches, nil
}

// largestBatches runs the search of --batch.
func (f *rematFlags) largestBatches(cmd *cobra.Command, paths []string, batches []int, setups []setting.Setup,
	o grid.Options) error {
	b := grid.BatchOptions{Options: o}
	var err error
	if b.Sizes, err = grid.ParseSizes(f.batch); err != nil {
		return flagError("batch", err)
	}
	if b.Budgets, err = f.budgetSizes(cmd.Flags().Changed("budgets")); err != nil {
		return flagError("budgets", err)
	}
	if f.files.wanted("html") {
		return flagError("html", errors.New("want no --batch beside it"))
	}
	opened, err := openLogs(cmd, paths, f.memory)
	if err != nil {
		return err
	}
	logs := make([]grid.BatchLog, len(opened))
	for i, l := range opened {
		logs[i] = grid.BatchLog{Log: l, Batch: batches[i]}
	}
	fits := len(b.Budgets) * (1 + len(o.Heuristics)) * (1 + len(setups)*len(o.Ladders))
	p := begin(cmd, stage{unit: "searches", total: int64(fits)})
	b.Done = func(share float64) {
		p.estimated(share)
		p.step()
	}
	ctx, done := untilInterrupt(cmd)
	r, err := grid.LargestBatches(ctx, logs, setups, b)
	done()
	if r == nil {
		return err
	}
	f.files.figures(r, report.BatchTable(r))
	return f.files.conclude(cmd, err, len(r.Fits) > 0, fmt.Sprintf("%d of %d searches are finished", len(r.Fits), fits),
		func(w io.Writer) error { return report.BatchTables(w, r) })
}

// budgetSizes reads --budgets as sizes.
func (f *rematFlags) budgetSizes(given bool) (sizes []device.Size, err error) {
	want := errors.New("with --batch want sizes, such as 11GiB or 11GiB,24GiB")
	if !given {
		return nil, want
	}
	for _, text := range splitNames(f.budgets) {
		n, err := device.ParseSize(text)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%.40q: %w", text, want)
		}
		sizes = append(sizes, n)
	}
	if len(sizes) == 0 {
		return nil, want
	}
	return sizes, nil
}
