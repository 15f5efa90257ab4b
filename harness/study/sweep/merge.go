package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/internal/units"
)

// Result is a row of the merged results: the exact figures of a cell. Rows have the order of the
// plan.
type Result struct {
	Cell      string        `json:"cell"`      // hash of the cell's key
	Target    string        `json:"device"`    // name of the device
	Search    Search        `json:"search"`    // the work
	FreeAt    replay.FreeAt `json:"free_at"`   // when strategies without streams get a delayed free
	Semantics string        `json:"semantics"` // version of the strategy's placements
	Learn     string        `json:"learn"`     // trace that the strategy planned by, as in the plan; empty: none
	Failed    string        `json:"failed"`    // the error of every repetition, and then no figures; empty: none
	// Completed reports that the trace completes: every request was granted in the measuring replay,
	// and a minimum capacity was found if it was searched
	Completed bool   `json:"completed"`
	Path      string `json:"path"` // the trace in the plan
	compare.Figures
}

// Timed is a row of the merged times: the measured figures of a cell, and where they were measured.
type Timed struct {
	Cell     string `json:"cell"`     // hash of the cell's key
	Trace    string `json:"trace"`    // name of the trace
	Strategy string `json:"strategy"` // name and preset
	Search   Search `json:"search"`   // the work
	Events   int    `json:"events"`   // of the trace
	compare.Measured
	Seconds *float64 `json:"cell_seconds"` // time of the whole cell; null: it failed
}

// Merged is the content of a store for a plan.
type Merged struct {
	Results
	Times    []Timed        // of the same cells
	Missing  []int          // rows whose cells the store does not have
	Failures map[int]string // errors of the rows whose results are failures
	Disputed []string       // cells on whose exact figures two workers disagree
}

// Merge reads the cells of a plan.
func (p *Plan) Merge(ctx context.Context, s cell.Store) (*Merged, error) {
	stored := make([]*kept, len(p.Rows))
	err := each(len(p.Rows), lookups, func(i int) (err error) {
		if stored[i], err = p.Rows[i].read(ctx, s); errors.Is(err, cell.ErrMissing) {
			stored[i], err = nil, nil
		}
		return err
	})
	m := &Merged{Failures: map[int]string{}}
	m.OfLogs = len(p.Rows) > 0 && p.Rows[0].Case != nil
	if err == nil {
		err = m.disputes(ctx, p, s)
	}
	if err != nil {
		return nil, err
	}
	for i, k := range stored {
		r := &p.Rows[i]
		if k == nil {
			m.Missing = append(m.Missing, i)
			continue
		}
		if k.failed != "" {
			m.Failures[i] = k.failed
		}
		if r.Case != nil {
			m.Logs = append(m.Logs, r.rematResult(k.run))
		} else {
			m.Traces = append(m.Traces, r.result(k.figures))
		}
		m.Times = append(m.Times, r.timed(k))
	}
	return m, nil
}

// kept is the cell of a row in a store.
type kept struct {
	failed  string
	seconds float64
	figures *compare.Kept // of a trace
	run     *grid.Kept    // of a log
}

// read reads the cell of a row. The error is [cell.ErrMissing] if the store does not have it.
func (r *Row) read(ctx context.Context, s cell.Store) (*kept, error) {
	if r.Case != nil {
		k, err := grid.ReadKept(ctx, s, r.Cell)
		return &kept{failed: k.Failed, seconds: k.Seconds, run: &k}, err
	}
	k, err := compare.ReadKept(ctx, s, r.Cell)
	return &kept{failed: k.Failed, seconds: k.Seconds, figures: &k}, err
}

func (r *Row) result(k *compare.Kept) Result {
	out := Result{Cell: r.Cell, Target: r.Device, Search: r.Search, FreeAt: r.FreeAt, Semantics: r.Semantics,
		Learn: r.Learn, Failed: k.Failed, Figures: k.Figures}
	out.Trace, out.TraceSHA256, out.Strategy, out.Events = r.Name, r.TraceSHA256, r.Strategy, r.Events
	out.Card, out.Path, out.Baseline = r.Card, r.Trace, r.Baseline
	out.Completed = k.Failed == "" && k.Figures.Completed() && (r.Search == Replay || k.MinCapacity != nil)
	out.Config = r.Config // of the key, and not with the limit of the measuring replay
	return out
}

func (r *Row) timed(k *kept) Timed {
	t := Timed{Cell: r.Cell, Trace: r.Name, Strategy: r.Strategy, Search: r.Search, Events: r.Events}
	if k.figures != nil {
		t.Measured = k.figures.Measured
	}
	if k.failed == "" {
		t.Seconds = &k.seconds
	}
	return t
}

// disputes finds the cells of a plan with other exact figures beside those in the store.
func (m *Merged) disputes(ctx context.Context, p *Plan, s cell.Store) error {
	names, err := s.Names(ctx, cell.Conflicts)
	if err != nil || len(names) == 0 {
		return err
	}
	ours := map[string]bool{}
	for i := range p.Rows {
		ours[p.Rows[i].Cell] = true
	}
	for _, name := range names {
		hash, _, _ := strings.Cut(strings.TrimPrefix(name, cell.Conflicts), ".")
		if ours[hash] && !slices.Contains(m.Disputed, hash) {
			m.Disputed = append(m.Disputed, hash)
		}
	}
	return nil
}

// String names a row for a message.
func (r *Row) String() string {
	if r.Case != nil {
		return fmt.Sprintf("%s: %s on %s by %s, %s, at %v", r.Cell[:12], r.Strategy, r.Trace, r.Case.Heuristic, r.Case.Ladder,
			r.Case.Ratio)
	}
	return fmt.Sprintf("%s: %s on %s, %s, %s", r.Cell[:12], r.Strategy, r.Trace, r.Device, r.Search)
}

// mostListed is the number of failed cells that a status lists.
const mostListed = 20

// Status writes how much of the plan is done, in words, and the failures.
func (p *Plan) Status(w io.Writer, m *Merged) error {
	missing := map[string]bool{}
	for _, i := range m.Missing {
		missing[p.Rows[i].Cell] = true
	}
	left, cost := 0.0, p.Cost()
	for _, i := range p.cells() {
		if missing[p.Rows[i].Cell] {
			left += p.Rows[i].Cost
		}
	}
	share := 1.0
	if cost > 0 {
		share = 1 - left/cost
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Done: %d of %s, %s of the predicted time; %d failed, %d missing.\n", len(m.Times),
		units.Several(len(p.Rows), "cell"), units.Percent(share), len(m.Failures), len(m.Missing))
	for n, i := range slices.Sorted(maps.Keys(m.Failures)) {
		if n == mostListed {
			fmt.Fprintf(&b, "and %d more\n", len(m.Failures)-n)
			break
		}
		fmt.Fprintf(&b, "%v: %s\n", &p.Rows[i], units.Printable(m.Failures[i]))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
