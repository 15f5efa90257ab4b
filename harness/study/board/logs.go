package board

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/study/sweep"
	"github.com/vramyard/vramyard/internal/units"
)

// collectLogs sets the logs and their entries.
func (b *Board) collectLogs(results []sweep.RematResult, c setting.Catalogue) error {
	all, place := inputs(len(results), func(i int) Input {
		r := &results[i]
		in := Input{Name: r.Model, SHA256: r.SHA256, Path: r.Path, Events: r.Steps, LowerBound: r.LowerBound}
		if r.Swaps != nil {
			in.LowerBound = 0 // constants may leave memory, too
		}
		return in
	})
	b.Logs = all
	entries, first := map[string]*Entry{}, len(b.Entries)
	tried := make([][]grid.Ratio, len(all)) // by log
	for i := range results {
		r, at := &results[i], place[i]
		if i == 0 {
			b.Settings = r.Settings
		}
		if err := sameSettings(&b.Settings, &r.Settings); err != nil {
			return err
		}
		key := fmt.Sprint(r.Strategy, "\x00", string(r.Config), "\x00", r.Heuristic, "\x00", r.Ladder)
		e := entries[key]
		if e == nil {
			setup, err := sweep.Lookup(c, r.Strategy, r.Config)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", r.Strategy, r.Model, err)
			}
			e = &Entry{Kind: OnLogs, Setup: setup, Heuristic: r.Heuristic, Ladder: r.Ladder,
				Runs: make([][]*sweep.RematResult, len(all)), Figures: make([]Figure, len(all))}
			entries[key] = e
			b.Entries = append(b.Entries, e)
		}
		e.outdated(r.Semantics)
		if r.Swaps != nil {
			e.Unlisted = "it may keep tensors in the host's memory, which is another constraint"
		} else if r.LowerBound != all[at].LowerBound && r.Failed == "" {
			return fmt.Errorf("%s on %s at %v: lower bound %d, and %d in other results: want one bound of a log", e.Name(),
				r.Model, r.Ratio, r.LowerBound, all[at].LowerBound)
		}
		k, found := slices.BinarySearchFunc(e.Runs[at], r.Ratio, byRatio)
		switch {
		case !found:
			e.Runs[at] = slices.Insert(e.Runs[at], k, r)
		case e.Runs[at][k].Cell != r.Cell:
			return twice(e, fmt.Sprintf("%s at %v", r.Model, r.Ratio), e.Runs[at][k].Cell, r.Cell)
		}
		if k, found := slices.BinarySearch(tried[at], r.Ratio); !found && r.Swaps == nil {
			tried[at] = slices.Insert(tried[at], k, r.Ratio)
		}
	}
	for _, e := range b.Entries[first:] {
		e.setBudgets(all, tried)
	}
	return nil
}

func byRatio(r *sweep.RematResult, ratio grid.Ratio) int { return cmp.Compare(r.Ratio, ratio) }

// sameSettings returns an error that names the settings in which two results differ.
func sameSettings(x, y *grid.Settings) error {
	theirs := y.Fields()
	for i, s := range x.Fields() {
		if a, b := s.String(), theirs[i].String(); a != b {
			return fmt.Errorf("results of logs with %s %q and %q: want one of them", s.Flag, a, b)
		}
	}
	return nil
}

// setBudgets sets the figures of an entry on logs, and why it is not listed if it lacks some of the
// budgets that others tried.
func (e *Entry) setBudgets(logs []Input, tried [][]grid.Ratio) {
	var missing []string
	for i, ratios := range tried {
		var lacks []grid.Ratio
		for _, r := range ratios {
			if _, found := slices.BinarySearchFunc(e.Runs[i], r, byRatio); !found {
				lacks = append(lacks, r)
			}
		}
		switch n := len(lacks); {
		case n == len(ratios):
			missing = append(missing, logs[i].Name)
		case n == 1:
			missing = append(missing, fmt.Sprintf("%s at %v", logs[i].Name, lacks[0]))
		case n > 1:
			missing = append(missing, fmt.Sprintf("%s at %v and %s", logs[i].Name, lacks[0],
				units.Several(n-1, "other budget")))
		}
		if r := e.Smallest(i); r != nil {
			e.Figures[i] = Figure{Bytes: r.Budget, Cost: r.TotalOverhead}
		}
	}
	e.lacks(missing)
}

// Smallest returns the run within the smallest budget that completes a log, or nil.
func (e *Entry) Smallest(log int) *sweep.RematResult {
	i := slices.IndexFunc(e.Runs[log], (*sweep.RematResult).Completed)
	if i < 0 {
		return nil
	}
	return e.Runs[log][i]
}
