package grid

import "github.com/vramyard/vramyard/harness/remat"

// Line summarizes the runs of one log, heuristic, strategy and ladder within all budgets. A budget
// is feasible if the run completes within it. A price is the difference of two smallest feasible
// budgets, as a share of the base peak; it is null if one of them does not exist.
type Line struct {
	Model     string `json:"model"`      // name of the log
	SHA256    string `json:"log_sha256"` // of the decompressed file
	Heuristic string `json:"heuristic"`  // heuristic that chose victims
	Strategy  string `json:"strategy"`   // name and preset, or counting
	Ladder    string `json:"ladder"`     // steps tried after a refusal

	// smallest feasible budget; null: none
	SmallestFeasible *Ratio `json:"smallest_feasible_ratio"`
	// overhead at that budget; null: none
	OverheadAtSmallest *float64      `json:"overhead_at_smallest"`
	LargestInfeasible  *Ratio        `json:"largest_infeasible_ratio"`             // null: none
	LargestVerdict     remat.Verdict `json:"largest_infeasible_verdict,omitempty"` // verdict of that run
	// overhead at half of the base peak; null: infeasible or not run
	OverheadAtHalf *float64 `json:"overhead_at_half"`

	PriceOfFragmentation *Ratio `json:"price_of_fragmentation"` // additional budget compared with counting
	PriceOfNotMoving     *Ratio `json:"price_of_not_moving"`    // additional budget compared with ladder defrag-first

	Baseline bool  `json:"-"` // a baseline, never reported as the winner
	Runs     []Run `json:"-"` // by ratio
}

// Monotone reports whether every budget from the smallest feasible one up is feasible.
func (l *Line) Monotone() bool {
	return l.SmallestFeasible == nil || l.LargestInfeasible == nil || *l.LargestInfeasible < *l.SmallestFeasible
}

type lineKey struct{ model, sha256, heuristic, strategy, ladder string }

// LinesOf groups runs, in the order of a report, into lines and computes their prices.
func LinesOf(runs []Run) (lines []Line) {
	smallest := map[lineKey]*Ratio{}
	for len(runs) > 0 {
		n := 1
		for n < len(runs) && runs[n].key() == runs[0].key() {
			n++
		}
		l := lineOf(runs[:n])
		lines, runs = append(lines, l), runs[n:]
		smallest[l.keyWith(l.Strategy, l.Ladder)] = l.SmallestFeasible
	}
	for i := range lines {
		l := &lines[i]
		if l.Strategy == Counting {
			continue
		}
		l.PriceOfFragmentation = difference(l.SmallestFeasible, smallest[l.keyWith(Counting, Evict)])
		if l.Ladder != DefragFirst {
			l.PriceOfNotMoving = difference(l.SmallestFeasible, smallest[l.keyWith(l.Strategy, DefragFirst)])
		}
	}
	return lines
}

func (r *Run) key() lineKey { return lineKey{r.Model, r.SHA256, r.Heuristic, r.Strategy, r.Ladder} }

func (l *Line) keyWith(strategy, ladder string) lineKey {
	return lineKey{l.Model, l.SHA256, l.Heuristic, strategy, ladder}
}

func difference(a, b *Ratio) *Ratio {
	if a == nil || b == nil {
		return nil
	}
	d := *a - *b
	return &d
}

// lineOf summarizes the runs of a line, without prices.
func lineOf(runs []Run) Line {
	first := &runs[0]
	l := Line{
		Model: first.Model, SHA256: first.SHA256, Heuristic: first.Heuristic, Strategy: first.Strategy, Ladder: first.Ladder,
		Baseline: first.Baseline, Runs: runs,
	}
	for i := range runs {
		switch r := &runs[i]; {
		case r.Verdict != remat.OK:
			l.LargestInfeasible, l.LargestVerdict = &r.Ratio, r.Verdict
		case l.SmallestFeasible == nil:
			l.SmallestFeasible, l.OverheadAtSmallest = &r.Ratio, r.TotalOverhead
		}
		if r := &runs[i]; r.Ratio == Half && r.Verdict == remat.OK {
			l.OverheadAtHalf = r.TotalOverhead
		}
	}
	return l
}
