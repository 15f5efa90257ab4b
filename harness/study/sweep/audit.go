package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vramyard/vramyard/harness/trace/workload"
)

// Audit is the outcome of a repetition of some cells.
type Audit struct {
	Cells       int          // of the results, each counted once
	Checked     int          // cells that were computed again
	Differences []Difference // in the order of the results, at most one for each cell
}

// Difference is a figure that a repetition does not reproduce.
type Difference struct {
	Row    Row    // the cell
	Figure string // name of the column
	Result string // its value in the results
	Again  string // its value now
}

func (d *Difference) Error() string {
	return fmt.Sprintf("cell %v: %s is %s in the results and %s now", &d.Row, d.Figure, d.Result, d.Again)
}

// row returns the row of the plan that a result is of.
func (r *Result) row() *Row {
	return &Row{Cell: r.Cell, Trace: r.Path, Name: r.Trace, Card: r.Card, Baseline: r.Baseline,
		TraceSHA256: r.TraceSHA256, Events: r.Events, Strategy: r.Strategy, Config: r.Config, Semantics: r.Semantics,
		Device: r.Target, Search: r.Search, FreeAt: r.FreeAt, Learn: r.Learn, Cost: float64(r.Events)}
}

// rows returns the rows of the plan that results are of.
func (r *Results) rows() (all []*Row) {
	for i := range r.Traces {
		all = append(all, r.Traces[i].row())
	}
	for i := range r.Logs {
		all = append(all, r.Logs[i].row())
	}
	return all
}

// byCell returns a [Result] or [RematResult] of each cell.
func (r *Results) byCell() map[string]any {
	all := map[string]any{}
	for i := range r.Traces {
		all[r.Traces[i].Cell] = &r.Traces[i]
	}
	for i := range r.Logs {
		all[r.Logs[i].Cell] = &r.Logs[i]
	}
	return all
}

// Len returns the number of results.
func (r *Results) Len() int { return len(r.Traces) + len(r.Logs) }

// Sample returns a share of the cells of some results, at least one, chosen by a seed, in the order
// of the results, and the number of all cells.
func Sample(results Results, share float64, seed uint64) (chosen Results, cells int) {
	var all []int // rows without repetitions
	seen := map[string]bool{}
	for i, r := range results.rows() {
		if !seen[r.Cell] {
			seen[r.Cell] = true
			all = append(all, i)
		}
	}
	cells = len(all)
	n := min(cells, max(1, int(math.Ceil(share*float64(cells)-1e-9))))
	random := workload.NewRand(seed)
	order := make([]int, cells)
	for i := range order {
		order[i] = i
	}
	for i := range n {
		k := i + int(random.Below(uint64(cells-i)))
		order[i], order[k] = order[k], order[i]
	}
	slices.Sort(order[:n])
	for _, k := range order[:n] {
		if i := all[k]; i < len(results.Traces) {
			chosen.Traces = append(chosen.Traces, results.Traces[i])
		} else {
			chosen.Logs = append(chosen.Logs, results.Logs[i-len(results.Traces)])
		}
	}
	return chosen, cells
}

// Repeat computes cells again and compares all exact figures. The worker's store must be empty, or
// results that it holds are believed. The worker opens traces by their path in the results.
func Repeat(ctx context.Context, results Results, w Worker) ([]Difference, error) {
	var all []Difference
	was, order := results.byCell(), map[string]int{}
	rows := results.rows()
	for i, r := range rows {
		order[r.Cell] = i
	}
	for len(rows) > 0 {
		learn := rows[0].Learn // a run has one forecast
		var now, later []*Row
		for _, r := range rows {
			if r.Learn == learn {
				now = append(now, r)
			} else {
				later = append(later, r)
			}
		}
		found, err := repeat(ctx, now, was, w)
		if err != nil {
			return nil, err
		}
		all, rows = append(all, found...), later
	}
	slices.SortFunc(all, func(a, b Difference) int { return order[a.Row.Cell] - order[b.Row.Cell] })
	return all, nil
}

// repeat computes the cells of some rows again and compares them with results, by cell.
func repeat(ctx context.Context, rows []*Row, was map[string]any, w Worker) (all []Difference, err error) {
	p := &Plan{}
	for _, r := range rows {
		setup, err := Lookup(w.Catalogue, r.Strategy, r.Config)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", r, err)
		}
		if setup.Semantics != r.Semantics {
			all = append(all, Difference{*r, "semantics", r.Semantics, setup.Semantics})
			continue
		}
		r.Baseline = setup.Baseline // compared as every figure
		p.Rows = append(p.Rows, *r)
	}
	unlike := map[int]bool{} // rows that are not computed
	w.differs = func(m *mismatch) {
		unlike[m.row] = true
		all = append(all, Difference{*m.of, m.figure, m.plan, m.here})
	}
	if _, err := p.Run(ctx, Shard{Count: 1}, w); err != nil {
		return nil, err
	}
	m, err := p.Merge(ctx, w.Store)
	if err != nil {
		return nil, err
	}
	for _, i := range m.Missing {
		if !unlike[i] {
			return nil, fmt.Errorf("%v: stopped before it was computed", &p.Rows[i])
		}
	}
	again := m.byCell()
	for i := range p.Rows {
		if unlike[i] {
			continue
		}
		cell := p.Rows[i].Cell
		d, err := differ(was[cell], again[cell])
		if err != nil {
			return nil, err
		}
		if d != nil {
			d.Row = p.Rows[i]
			all = append(all, *d)
		}
	}
	return all, nil
}

// differ returns the first figure in which two results of a cell differ, nil if they are equal.
func differ(was, now any) (*Difference, error) {
	a, err := columns(was)
	if err != nil {
		return nil, err
	}
	b, err := columns(now)
	if err != nil {
		return nil, err
	}
	for _, c := range append(a, b...) { // some figures may be omitted
		x, y := valueOf(a, c.name), valueOf(b, c.name)
		if !bytes.Equal(x, y) {
			return &Difference{Figure: c.name, Result: string(x), Again: string(y)}, nil
		}
	}
	return nil, nil
}

// column is a figure of a result in JSON.
type column struct {
	name  string
	value json.RawMessage
}

// valueOf returns the value of a column, null if it is omitted.
func valueOf(all []column, name string) json.RawMessage {
	if i := slices.IndexFunc(all, func(c column) bool { return c.name == name }); i >= 0 {
		return all[i].value
	}
	return json.RawMessage("null")
}

var errObject = errors.New("want an object")

// columns returns the columns of a result in order.
func columns(r any) (all []column, err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := name.(string)
		if !ok {
			return nil, errObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		all = append(all, column{key, value})
	}
	return all, nil
}

// auditConfidence is the confidence of [Audit.Bound].
const auditConfidence = 0.95

// Bound returns the largest number of cells that may differ, if none of the checked ones does: with
// more, a sample of this size would have shown one with a probability of at least 95 %.
func (a *Audit) Bound() int {
	// The probability that none of the n checked of N cells is among d: the product of
	// (N-n-i) / (N-i) for i below d.
	left := 1.0
	for d := range a.Cells {
		left *= float64(a.Cells-a.Checked-d) / float64(a.Cells-d)
		if left < 1-auditConfidence-1e-9 { // rounding
			return d
		}
	}
	return a.Cells
}

// String says in a sentence how sure an audit is.
func (a *Audit) String() string {
	if n := len(a.Differences); n > 0 {
		return fmt.Sprintf("%d of %d checked cells differ", n, a.Checked)
	}
	if a.Checked == a.Cells {
		return fmt.Sprintf("all %d cells are reproduced byte for byte", a.Cells)
	}
	bound := a.Bound()
	return fmt.Sprintf("%d of %d cells checked, and none differs: with 95 %% confidence at most %d of %d (%.3g %%) do",
		a.Checked, a.Cells, bound, a.Cells, 100*float64(bound)/float64(a.Cells))
}
