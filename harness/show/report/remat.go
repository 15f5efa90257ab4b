package report

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// RematTables writes a verdict for each log, and a table for each log and heuristic: the lower
// bound, the counting memory, then the strategies by smallest sufficient budget.
func RematTables(w io.Writer, r *grid.Report) error {
	out := &lines{w: w}
	verdicts := ""
	for groups := range byLog(r) {
		if v := rematVerdict(StyleOf(w), groups); v != "" {
			verdicts += v + "\n"
		}
	}
	if verdicts != "" {
		out.printf("%s\n", verdicts)
	}
	out.printf("budgets are shares of the base peak: the peak of a run without a budget, liveness %s\n"+
		"recomputation may make a run take %s times the time of its operators; moves (%s) come on top\n\n", r.Liveness,
		raw(r.Limit), r.Defrag)
	for _, s := range RematSheets(r) {
		out.sheet(&s, 2)
		out.printf("\n")
	}
	return out.err
}

// RematTable returns the runs of a grid as a flat table.
func RematTable(r *grid.Report) *flat.Table { return flat.Of(r.Runs) }

// The identifying columns of a line.
var (
	lineStrategy = Texts("strategy", "name and preset; counting knows no addresses", func(l grid.Line) string {
		return l.Strategy
	}).
		top(func(grid.Line) Cell { return textCell("lower bound") })
	lineLadder = Texts("ladder", "steps after a refused request", func(l grid.Line) string {
		return l.Ladder
	}).
		top(emptyCell)
)

func emptyCell(grid.Line) Cell { return textCell("") }

func (g *rematGroup) columns() []ColumnOf[grid.Line] {
	all := []ColumnOf[grid.Line]{
		lineStrategy, lineLadder,
		figures("feasible", "the smallest budget within which the log completes, in base peaks",
			func(l grid.Line) Cell { return ratioCell(l.SmallestFeasible) }).
			top(func(grid.Line) Cell { return g.share(g.lowerBound()) }),
		figures("overhead", "time with recomputation and moves within that budget, in times of the model",
			func(l grid.Line) Cell { return ratioOf(l.OverheadAtSmallest) }),
		figures("infeasible", "the largest budget within which it does not complete, in base peaks",
			func(l grid.Line) Cell { return ratioCell(l.LargestInfeasible) }),
		Texts("because", "how the run within that one ended",
			func(l grid.Line) string { return strings.TrimPrefix(string(l.LargestVerdict), "oom-") }).top(emptyCell),
		figures("at 0.5", "overhead within half of the base peak",
			func(l grid.Line) Cell { return ratioOf(l.OverheadAtHalf) }),
		figures("fragmentation", "price of fragmentation: base peaks more than counting needs", g.fragmentation),
		figures("not moving", "price of not moving: base peaks more than the same strategy needs if blocks are moved first",
			func(l grid.Line) Cell { return ratioCell(l.PriceOfNotMoving) }),
	}
	if g.swaps() {
		all = append(all, g.swapColumns()...)
	}
	return all
}

// swapColumns returns what a line pays within its smallest sufficient budget.
func (g *rematGroup) swapColumns() []ColumnOf[grid.Line] {
	at := func(cell func(r *grid.Run) Cell) func(grid.Line) Cell {
		return func(l grid.Line) Cell {
			for i := range l.Runs {
				if r := &l.Runs[i]; r.Swaps != nil && l.SmallestFeasible != nil && r.Ratio == *l.SmallestFeasible {
					return cell(r)
				}
			}
			return missingCell()
		}
	}
	times := func(ns int64) Cell { return fixedCell(float64(ns)/float64(max(g.base.Time, 1)), 3) }
	return []ColumnOf[grid.Line]{
		figures("recomputed", "time of recomputation within the smallest budget, in times of the model",
			at(func(r *grid.Run) Cell { return times(r.Remat) })),
		figures("stalled", "time that operators waited for copies to the host and back, in times of the model",
			at(func(r *grid.Run) Cell { return times(r.Swaps.Stall) })),
		figures("swapped", "bytes copied to the host, in base peaks",
			at(func(r *grid.Run) Cell { return g.share(device.Size(max(r.Swaps.OutBytes, 0))) })),
	}
}

// swaps reports whether a run of the group may copy to the host.
func (g *rematGroup) swaps() bool {
	return slices.ContainsFunc(g.lines, func(l grid.Line) bool { return l.Runs[0].Swaps != nil })
}

// lowerBound returns the least bound of the lines: a log needs less memory if constants can leave.
func (g *rematGroup) lowerBound() device.Size {
	least := g.base.LowerBound
	for _, l := range g.lines {
		if r := &l.Runs[0]; r.Swaps != nil {
			least = min(least, r.LowerBound)
		}
	}
	return least
}

// fragmentation returns the price of fragmentation, or a lower bound of it for a line without a
// sufficient budget.
func (g *rematGroup) fragmentation(l grid.Line) Cell {
	c, least := ratioCell(l.PriceOfFragmentation), g.lines[0].SmallestFeasible
	if l.SmallestFeasible == nil && least != nil && l.Strategy != grid.Counting {
		c.Text = "> " + (l.Runs[len(l.Runs)-1].Ratio - *least).String()
	}
	return c
}

// RematSheets returns a table for each log and heuristic. A log with several heuristics gets an
// overview of them first.
func RematSheets(r *grid.Report) (all []Sheet) {
	for groups := range byLog(r) {
		if len(groups) > 1 {
			all = append(all, rematHeadline(groups))
		}
		for i := range groups {
			all = append(all, rematSheet(&groups[i]))
		}
	}
	return all
}

func byLog(r *grid.Report) iter.Seq[[]rematGroup] {
	return adjacent(rematGroups(r), func(a, b rematGroup) bool { return a.base == b.base })
}

// rematHeadline returns the overview of a log: a column for each heuristic, rows in the order of
// the first.
func rematHeadline(groups []rematGroup) Sheet {
	s := Sheet{
		Title:   units.Printable(groups[0].base.Model) + " by each heuristic",
		Columns: []Column{lineStrategy.Column, lineLadder.Column},
		Rows:    [][]Cell{{textCell("lower bound"), textCell("")}},
		Notes: []string{"the smallest budget within which the log completes, in base peaks; in brackets the " +
			"overhead at 0.5"},
	}
	for i := range groups {
		h := units.Printable(groups[i].lines[0].Heuristic)
		s.Columns = append(s.Columns, Column{h, "evicts by " + h, true})
		s.Rows[0] = append(s.Rows[0], groups[i].share(groups[i].lowerBound()))
	}
	for _, first := range groups[0].lines {
		row := []Cell{textCell(first.Strategy), textCell(first.Ladder)}
		for i := range groups {
			at := slices.IndexFunc(groups[i].lines, func(l grid.Line) bool {
				return l.Strategy == first.Strategy && l.Ladder == first.Ladder
			})
			row = append(row, headlineCell(groups[i].lines, at))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// headlineCell returns the cell of a line in the overview, empty for lines missing in an
// interrupted grid.
func headlineCell(lines []grid.Line, at int) Cell {
	if at < 0 {
		return missingCell()
	}
	c := ratioCell(lines[at].SmallestFeasible)
	if half := lines[at].OverheadAtHalf; half != nil {
		c.Text += " (" + ratioOf(half).Text + ")"
	}
	return c
}

// rematGroup is the lines of a log and a heuristic.
type rematGroup struct {
	base  *grid.Base
	lines []grid.Line
}

// rematGroups groups the lines by log and heuristic, each sorted by smallest sufficient budget.
func rematGroups(r *grid.Report) (groups []rematGroup) {
	at := 0 // index of the log
	for lines := range ByHeuristic(r.Lines) {
		for r.Logs[at].Model != lines[0].Model || r.Logs[at].SHA256 != lines[0].SHA256 {
			at++
		}
		g := rematGroup{&r.Logs[at], slices.Clone(lines)}
		slices.SortStableFunc(g.lines, bySmallest)
		groups = append(groups, g)
	}
	return groups
}

// ByHeuristic yields the lines of each log and heuristic.
func ByHeuristic(lines []grid.Line) iter.Seq[[]grid.Line] {
	return adjacent(lines, func(a, b grid.Line) bool {
		return a.Model == b.Model && a.SHA256 == b.SHA256 && a.Heuristic == b.Heuristic
	})
}

// bySmallest orders lines by smallest sufficient budget, then by overhead there; counting comes
// first, lines without such a budget last.
func bySmallest(a, b grid.Line) int {
	return cmp.Or(countingFirst(a.Strategy, b.Strategy), lastIfNil(a.SmallestFeasible, b.SmallestFeasible),
		lastIfNil(a.OverheadAtSmallest, b.OverheadAtSmallest))
}

// countingFirst orders the counting memory before strategies.
func countingFirst(a, b string) int {
	rank := map[bool]int{true: 0, false: 1}
	return rank[a == grid.Counting] - rank[b == grid.Counting]
}

// lastIfNil compares two values; nil is the largest.
func lastIfNil[T cmp.Ordered](a, b *T) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}

func (g *rematGroup) title() string {
	return fmt.Sprintf("%s by %s: %d operators of %s, base peak %s, sha256 %.12s", units.Printable(g.base.Model),
		g.lines[0].Heuristic,
		g.base.Ops, units.Nanoseconds(uint64(g.base.Time)), units.Bytes(g.base.Peak), g.base.SHA256)
}

// share returns a cell with a size in base peaks.
func (g *rematGroup) share(n device.Size) Cell {
	return fixedCell(float64(n)/float64(g.base.Peak), 3)
}

// rematSheet returns the table of a log and a heuristic.
func rematSheet(g *rematGroup) Sheet {
	s := sheetWithTop(g.lines[0], g.title(), g.columns(), g.lines)
	s.Notes = []string{"constants alone are " + g.share(g.base.Constant).Text + " base peaks"}
	for i := range g.lines {
		l := &g.lines[i]
		if !l.Monotone() {
			s.Notes = append(s.Notes, fmt.Sprintf("%s, ladder %s: completes within %v and fails again within %v",
				units.Printable(l.Strategy), l.Ladder, l.SmallestFeasible, l.LargestInfeasible))
		}
	}
	return s
}

// ratioCell returns a cell with an optional ratio.
func ratioCell(r *grid.Ratio) Cell {
	return optional(r, func(r grid.Ratio) Cell { return number(r.String(), r.Float()) })
}

// Limits of the tables of all runs: columns of budgets, and runs with a hint, which takes about a
// hundred bytes.
const (
	mostBudgets = 50
	mostHints   = 10_000
)

// RematGrids returns a table for each log and heuristic with the outcome of every run: its overhead
// or its failure, and a hint. Beyond 50 budgets some are omitted evenly.
func RematGrids(r *grid.Report) (all []Sheet) {
	for _, g := range rematGroups(r) {
		runs := g.lines[0].Runs
		every := (len(runs) + mostBudgets - 1) / mostBudgets
		s := Sheet{
			Title: fmt.Sprintf("%s by %s: overhead by budget, or the reason of the failure", units.Printable(g.base.Model),
				units.Printable(g.lines[0].Heuristic)),
			Columns: []Column{lineStrategy.Column, lineLadder.Column},
		}
		for i := 0; i < len(runs); i += every {
			s.Columns = append(s.Columns, Column{runs[i].Ratio.String(), "overhead within " + units.Bytes(runs[i].Budget), true})
		}
		for _, l := range g.lines {
			row := []Cell{textCell(l.Strategy), textCell(l.Ladder)}
			for i := 0; i < len(runs); i += every {
				c := endCell(&l.Runs[i])
				if len(r.Runs) <= mostHints {
					c.Hint = rematHint(&l.Runs[i])
				}
				row = append(row, c)
			}
			s.Rows = append(s.Rows, row)
		}
		if every > 1 {
			s.Notes = append(s.Notes, fmt.Sprintf("one of %d budgets is shown", every))
		}
		all = append(all, s)
	}
	return all
}

func endCell(r *grid.Run) Cell {
	short := map[remat.Verdict]string{
		remat.OK: "ok", remat.OOMCapacity: "cap.", remat.OOMFragmentation: "frag.", remat.OOMRounding: "round.",
	}
	if r.Verdict == remat.OK && r.TotalOverhead != nil {
		return ratioOf(r.TotalOverhead)
	}
	return Cell{Text: units.Printable(cmp.Or(short[r.Verdict], string(r.Verdict))), Number: true}
}

// rematHint describes a run in one sentence.
func rematHint(r *grid.Run) string {
	hint := fmt.Sprintf("%s: %d evictions, %s of them in vain; %d recomputations, chains of up to %d; %s moved",
		units.Printable(string(r.Verdict)), r.EvictPressure, units.Bytes(device.Size(max(r.EvictBytesWasted, 0))),
		r.Remats, r.Deepest,
		units.Bytes(device.Size(max(r.MovedBytes, 0))))
	if r.Swaps != nil {
		hint += fmt.Sprintf("; %d swaps of %s, stalls of %s", r.Swaps.Out,
			units.Bytes(device.Size(max(r.Swaps.OutBytes, 0))), units.Nanoseconds(uint64(max(r.Swaps.Stall, 0))))
	}
	return hint
}
