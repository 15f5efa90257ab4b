package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// BatchTables writes, for each budget, a sentence with the largest batch size without and with
// eviction. Then come the error of the prediction and a table for each budget.
func BatchTables(w io.Writer, r *grid.BatchReport) error {
	out := &lines{w: w}
	style := StyleOf(w)
	for fits := range byBudget(r) {
		out.printf("%s\n", batchVerdict(style, r.Sizes, fits))
	}
	out.printf("\n%s\n", predicted(r))
	out.printf("recomputation may make a run take %s times the time of its operators; moves (%s) come on top; "+
		"liveness %s\n\n", raw(r.Limit), r.Defrag, r.Liveness)
	for fits := range byBudget(r) {
		s := batchSheet(r.Sizes, fits)
		out.sheet(&s, 2)
		out.printf("\n")
	}
	return out.err
}

// BatchTable returns the largest batch sizes as a flat table.
func BatchTable(r *grid.BatchReport) *flat.Table { return flat.Of(r.Fits) }

func byBudget(r *grid.BatchReport) func(func([]grid.Fit) bool) {
	return adjacent(r.Fits, func(a, b grid.Fit) bool { return a.Budget == b.Budget })
}

// batchVerdict answers how large a batch fits in one budget, with strategies; with counting if it
// ran alone.
func batchVerdict(style Style, sizes grid.Sizes, fits []grid.Fit) string {
	ranked := slices.DeleteFunc(slices.Clone(fits), func(f grid.Fit) bool {
		return f.Baseline || f.Strategy == grid.Counting
	})
	if len(ranked) == 0 {
		ranked = fits
	}
	var plain, evicting *grid.Fit
	for i := range ranked {
		to := &evicting
		if ranked[i].Heuristic == grid.NoEviction {
			to = &plain
		}
		if ranked[i].EveryUpTo != nil && (*to == nil || byLargest(ranked[i], **to) < 0) {
			*to = &ranked[i]
		}
	}
	within := "Within " + units.Bytes(fits[0].Budget)
	if evicting == nil && plain == nil {
		return fmt.Sprintf("%s %s", within, style.Paint(Bad, fmt.Sprintf("batch size %d does not complete.", sizes.From)))
	}
	s := fmt.Sprintf("%s batch size %d does not complete without eviction", within, sizes.From)
	if plain != nil {
		s = fmt.Sprintf("%s the program completes with batch sizes up to %s without eviction", within, upTo(plain, sizes))
	}
	if evicting == nil || plain != nil && plain.FirstFailure == "" {
		return s + "."
	}
	s += fmt.Sprintf(", and up to %s with it: %s by %s (ladder %s)", upTo(evicting, sizes),
		style.Paint(Good, units.Printable(evicting.Strategy)), units.Printable(evicting.Heuristic), evicting.Ladder)
	if evicting.Overhead != nil {
		s += fmt.Sprintf(", in %.3f × the time of its operators", *evicting.Overhead)
	}
	return s + "."
}

func upTo(f *grid.Fit, sizes grid.Sizes) string {
	s := strconv.Itoa(*f.EveryUpTo)
	if f.FirstFailure == "" {
		s += ", the end of the range,"
	}
	return s
}

// predicted names the recordings and the error of the logs made of them.
func predicted(r *grid.BatchReport) string {
	first, last := r.Recorded[0], r.Recorded[len(r.Recorded)-1]
	s := fmt.Sprintf("logs are predicted on a line through batch sizes %d (%s) and %d (%s)", first.Batch,
		units.Printable(first.Model), last.Batch, units.Printable(last.Model))
	if len(r.Deviations) == 0 {
		return s + "; a third recording would show the error"
	}
	for _, d := range r.Deviations {
		s += fmt.Sprintf("\nerror at batch size %d, recorded too: bytes %s; times %s operator by operator, %+.1f %% in sum",
			d.Batch, units.Percent(d.Bytes), units.Percent(d.Time), 100*d.Step)
	}
	return s
}

// batchSheet returns the table of a budget: a row for each strategy and ladder, a column for each
// heuristic.
func batchSheet(sizes grid.Sizes, fits []grid.Fit) Sheet {
	s := Sheet{
		Title:   fmt.Sprintf("largest batch size within %s", units.Bytes(fits[0].Budget)),
		Columns: []Column{lineStrategy.Column, lineLadder.Column},
		Notes: []string{
			fmt.Sprintf("of the batch sizes %d to %d in steps of %d, every one up to the figure completes; larger ones that "+
				"complete, with failures in between, end at the figure after the slash", sizes.From, sizes.Last(), sizes.Step),
			"in brackets: time with recomputation and moves, in times of the operators",
		},
	}
	rows := slices.Collect(adjacent(fits, func(a, b grid.Fit) bool {
		return a.Strategy == b.Strategy && a.Ladder == b.Ladder
	}))
	slices.SortStableFunc(rows, func(a, b []grid.Fit) int {
		return cmp.Or(countingFirst(a[0].Strategy, b[0].Strategy), byLargest(best(a), best(b)))
	})
	for _, f := range fits {
		if h := units.Printable(f.Heuristic); !slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Name == h }) {
			s.Columns = append(s.Columns, Column{h, "largest batch size: " + h, true})
		}
	}
	for _, fits := range rows {
		row := []Cell{textCell(fits[0].Strategy), textCell(fits[0].Ladder)}
		for _, c := range s.Columns[len(row):] {
			at := slices.IndexFunc(fits, func(f grid.Fit) bool { return units.Printable(f.Heuristic) == c.Name })
			if at < 0 { // an interrupted search
				row = append(row, missingCell())
				continue
			}
			row = append(row, fitCell(fits[at], sizes))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// byLargest orders fits by batch size, then by overhead there.
func byLargest(a, b grid.Fit) int {
	return cmp.Or(-cmp.Compare(largest(a.EveryUpTo), largest(b.EveryUpTo)), lastIfNil(a.Overhead, b.Overhead))
}

// best returns the fit with the largest batch size.
func best(fits []grid.Fit) grid.Fit { return slices.MinFunc(fits, byLargest) }

func largest(batch *int) int {
	if batch == nil {
		return 0
	}
	return *batch
}

// fitCell returns the cell of a fit: "< 32" if the smallest size fails, "≥ 512" if all complete,
// "96 / 200" if every one up to 96 does and 200 is the largest.
func fitCell(f grid.Fit, sizes grid.Sizes) Cell {
	if f.EveryUpTo == nil {
		return Cell{Text: fmt.Sprintf("< %d", sizes.From), Number: true}
	}
	c := number(strconv.Itoa(*f.EveryUpTo), float64(*f.EveryUpTo))
	switch {
	case f.FirstFailure == "":
		c.Text = "≥ " + c.Text
	case *f.Largest > *f.EveryUpTo:
		c.Text += fmt.Sprintf(" / %d", *f.Largest)
	}
	if f.Heuristic != grid.NoEviction && f.Overhead != nil {
		c.Text += fmt.Sprintf(" (%.3f)", *f.Overhead)
	}
	return c
}
