package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/internal/units"
)

// The limits of a page of 5 MB: bytes of its plots, which base64 enlarges by a third, and runs
// listed in a table.
const (
	mostCurves = 1_600_000
	mostRuns   = 20_000
)

// Grid returns the page of a rematerialization grid: its tables, and budget curves for each log,
// heuristic and ladder within the limit. number returns the palette index of a strategy.
func Grid(r *grid.Report, number func(strategy string) int) (*page.Report, error) {
	p := &page.Report{
		Kind: "remat", Title: "Training steps under a memory budget", Sheets: report.RematSheets(r),
		Facts: []page.Fact{
			{Name: "limit", Value: strconv.FormatFloat(r.Limit, 'g', -1, 64)},
			{Name: "seed", Value: strconv.FormatUint(r.Seed, 10)},
			{Name: "liveness", Value: r.Liveness}, {Name: "trigger", Value: r.Trigger}, {Name: "defrag", Value: r.Defrag},
			{Name: "sampling", Value: r.Sampling}, {Name: "least evictee", Value: r.MinEvictee},
			{Name: "parent order", Value: r.ParentOrder},
			{Name: "eager in remat", Value: strconv.FormatBool(r.EagerInRemat)}, {Name: "quirks", Value: r.Quirks},
		},
	}
	p.Facts = slices.DeleteFunc(p.Facts, func(f page.Fact) bool { return f.Value == "" })
	if len(r.Runs) <= mostRuns {
		p.Sheets = append(p.Sheets, report.RematGrids(r)...)
	} else {
		p.Texts = append(p.Texts, page.Text{Title: "Omitted tables",
			Body: fmt.Sprintf("The outcomes of %d runs are in the output of --json and --csv.", len(r.Runs))})
	}
	size, left := 0, 0
	for _, runs := range curves(r) {
		text, err := json.Marshal(&grid.Report{Schema: grid.Schema, Runs: runs})
		if err != nil {
			return nil, err
		}
		svg, err := plot("the grid", text, "", number, nil)
		if errors.Is(err, chart.ErrNothing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if size += len(svg); size > mostCurves {
			left++
			continue
		}
		last := &runs[len(runs)-1]
		p.Plots = append(p.Plots, page.Plot{SVG: svg, Title: fmt.Sprintf("%s by %s, ladder %s: time over budget",
			units.Printable(last.Model), units.Printable(last.Heuristic), units.Printable(last.Ladder))})
	}
	if left > 0 {
		p.Texts = append(p.Texts, page.Text{Title: "Omitted plots", Body: fmt.Sprintf(
			"%d sets of budget curves do not fit this page; vramyard plot draws them from the JSON result.", left)})
	}
	return p, nil
}

// curves groups the runs by log, heuristic and ladder. Runs of counting belong to each ladder.
func curves(r *grid.Report) (all [][]grid.Run) {
	for lines := range report.ByHeuristic(r.Lines) {
		var counted []grid.Run
		var ladders []string
		for _, l := range lines {
			if l.Strategy == grid.Counting {
				counted = append(counted, l.Runs...)
			} else if !slices.Contains(ladders, l.Ladder) {
				ladders = append(ladders, l.Ladder)
			}
		}
		if len(ladders) == 0 {
			all = append(all, counted)
		}
		for _, ladder := range ladders {
			runs := slices.Clone(counted)
			for _, l := range lines {
				if l.Ladder == ladder && l.Strategy != grid.Counting {
					runs = append(runs, l.Runs...)
				}
			}
			all = append(all, runs)
		}
	}
	return all
}
