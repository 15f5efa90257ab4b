package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/cell"
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
	Results  []Result // of the cells that the store has
	Times    []Timed  // of the same cells
	Missing  []int    // rows whose cells the store does not have
	Failed   []int    // rows whose results are failures
	Disputed []string // cells on whose exact figures two workers disagree
}

// Merge reads the cells of a plan.
func (p *Plan) Merge(ctx context.Context, s cell.Store) (*Merged, error) {
	kept := make([]*compare.Kept, len(p.Rows))
	err := each(len(p.Rows), lookups, func(i int) error {
		k, err := compare.ReadKept(ctx, s, p.Rows[i].Cell)
		if err == nil {
			kept[i] = &k
		} else if errors.Is(err, cell.ErrMissing) {
			err = nil
		}
		return err
	})
	m := &Merged{}
	if err == nil {
		err = m.disputes(ctx, p, s)
	}
	if err != nil {
		return nil, err
	}
	for i, k := range kept {
		r := &p.Rows[i]
		if k == nil {
			m.Missing = append(m.Missing, i)
			continue
		}
		if k.Failed != "" {
			m.Failed = append(m.Failed, i)
		}
		m.Results = append(m.Results, r.result(k))
		m.Times = append(m.Times, r.timed(k))
	}
	return m, nil
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

func (r *Row) timed(k *compare.Kept) Timed {
	t := Timed{Cell: r.Cell, Trace: r.Name, Strategy: r.Strategy, Search: r.Search, Events: r.Events, Measured: k.Measured}
	if k.Failed == "" {
		t.Seconds = &k.Seconds
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
	fmt.Fprintf(&b, "Done: %d of %s, %s of the predicted time; %d failed, %d missing.\n", len(m.Results),
		units.Several(len(p.Rows), "cell"), units.Percent(share), len(m.Failed), len(m.Missing))
	for n, i := range m.Failed {
		if n == mostListed {
			fmt.Fprintf(&b, "and %d more\n", len(m.Failed)-n)
			break
		}
		fmt.Fprintf(&b, "%v: %s\n", &p.Rows[i], units.Printable(m.failure(p.Rows[i].Cell)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// failure returns the error that is the result of a cell.
func (m *Merged) failure(cell string) string {
	for i := range m.Results {
		if m.Results[i].Cell == cell {
			return m.Results[i].Failed
		}
	}
	return ""
}
