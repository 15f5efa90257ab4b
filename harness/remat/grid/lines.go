package grid

import "github.com/vramyard/vramyard/harness/remat"

// Line says what the runs of one strategy with one ladder by one heuristic on one log come to.
// Prices are differences of the smallest budgets that suffice, in base peaks; null where there is
// none to compare.
type Line struct {
	Model     string `json:"model"`      // name of the log
	SHA256    string `json:"log_sha256"` // of the decompressed file
	Heuristic string `json:"heuristic"`  // which chose victims
	Strategy  string `json:"strategy"`   // name and preset, or counting
	Ladder    string `json:"ladder"`     // what was tried when memory was short

	// smallest budget that suffices; null: none of them
	Smallest *Ratio `json:"smallest_feasible_ratio"`
	// overhead within that budget; null: there is none
	AtSmallest *float64      `json:"overhead_at_smallest"`
	Largest    *Ratio        `json:"largest_infeasible_ratio"`             // largest that does not; null: all suffice
	Why        remat.Verdict `json:"largest_infeasible_verdict,omitempty"` // how the run ended there
	// overhead at half of the base peak; null: infeasible, or not run
	AtHalf *float64 `json:"overhead_at_half"`

	Fragmentation *Ratio `json:"price_of_fragmentation"` // more than the memory that counts needs
	NotMoving     *Ratio `json:"price_of_not_moving"`    // more than the same strategy needs if blocks are moved first

	Baseline bool  `json:"-"` // Strategy is a baseline: no verdict names it the winner
	Runs     []Run `json:"-"` // the points, by ratio
}

// Monotone reports whether no budget above one that suffices is too small.
func (l *Line) Monotone() bool {
	return l.Smallest == nil || l.Largest == nil || *l.Largest < *l.Smallest
}

// key names a line.
type key struct{ model, sha256, heuristic, strategy, ladder string }

// LinesOf returns the lines of runs in the order of a report.
func LinesOf(runs []Run) (lines []Line) {
	smallest := map[key]*Ratio{}
	for len(runs) > 0 {
		n := 1
		for n < len(runs) && runs[n].key() == runs[0].key() {
			n++
		}
		l := lineOf(runs[:n])
		lines, runs = append(lines, l), runs[n:]
		smallest[l.like(l.Strategy, l.Ladder)] = l.Smallest
	}
	for i := range lines {
		l := &lines[i]
		if l.Strategy == Counting {
			continue
		}
		l.Fragmentation = beyond(l.Smallest, smallest[l.like(Counting, Evict)])
		if l.Ladder != DefragFirst {
			l.NotMoving = beyond(l.Smallest, smallest[l.like(l.Strategy, DefragFirst)])
		}
	}
	return lines
}

func (r *Run) key() key { return key{r.Model, r.SHA256, r.Heuristic, r.Strategy, r.Ladder} }

func (l *Line) like(strategy, ladder string) key {
	return key{l.Model, l.SHA256, l.Heuristic, strategy, ladder}
}

func beyond(a, b *Ratio) *Ratio {
	if a == nil || b == nil {
		return nil
	}
	d := *a - *b
	return &d
}

// lineOf returns what the runs of a line come to, prices aside.
func lineOf(runs []Run) Line {
	first := &runs[0]
	l := Line{
		Model: first.Model, SHA256: first.SHA256, Heuristic: first.Heuristic, Strategy: first.Strategy, Ladder: first.Ladder,
		Baseline: first.Baseline, Runs: runs,
	}
	for i := range runs {
		switch r := &runs[i]; {
		case r.Verdict != remat.OK:
			l.Largest, l.Why = &r.Ratio, r.Verdict
		case l.Smallest == nil:
			l.Smallest, l.AtSmallest = &r.Ratio, r.Total
		}
		if r := &runs[i]; r.Ratio == Half && r.Verdict == remat.OK {
			l.AtHalf = r.Total
		}
	}
	return l
}
