package stats

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/study/diff"
)

// Schema names the form of [Result] in JSON.
const Schema = "vramyard-stats/1"

// Options of a comparison. The zero value is useful.
type Options struct {
	Seed uint64 // of the bootstrap
	Time bool   // compare measured times too
}

// Result compares two sides.
type Result struct {
	Schema     string           `json:"schema"`      // the constant Schema
	Provenance provenance.Build `json:"provenance"`  // of the program
	A          Side             `json:"a"`           // reference
	B          Side             `json:"b"`           // compared with A
	Confidence float64          `json:"confidence"`  // of the intervals
	Resamples  int              `json:"resamples"`   // of the bootstrap
	Seed       uint64           `json:"seed"`        // of the bootstrap
	Traces     int              `json:"trace_count"` // traces that both sides have
	Figures    []Figure         `json:"figures"`     // in the order of importance
	OnlyA      []Run            `json:"unmatched_a"` // runs of A without a partner
	OnlyB      []Run            `json:"unmatched_b"` // runs of B without a partner
}

// Figure compares one figure over all traces. For every figure less is better. If a trace has
// several pairs of runs, on several devices or by several searches, its ratio is their geometric
// mean, and the side with more failures is the higher one.
type Figure struct {
	Figure   string  `json:"figure"`            // name of the column
	Measured bool    `json:"measured"`          // varies between equal runs
	Verdict  Verdict `json:"verdict"`           // which side is lower
	Traces   int     `json:"trace_count"`       // traces that are compared
	Less     int     `json:"b_less_count"`      // traces on which B is lower
	Equal    int     `json:"equal_count"`       // traces on which both are equal, or fail
	More     int     `json:"b_more_count"`      // traces on which B is higher
	FailedA  int     `json:"a_failed_count"`    // traces on which B is lower because A fails more often
	FailedB  int     `json:"b_failed_count"`    // traces on which B is higher because B fails more often
	Failed   int     `json:"both_failed_count"` // traces on which both fail
	Ratios   int     `json:"ratio_count"`       // traces with a ratio, which the next figures summarize

	Mean   *float64 `json:"geometric_mean_ratio"` // of B / A; null: no trace has a ratio
	Low    *float64 `json:"interval_low"`         // of the mean; null: too few traces
	High   *float64 `json:"interval_high"`        // of the mean; null: too few traces
	Median *float64 `json:"median_ratio"`         // of B / A
	Least  *Extreme `json:"least"`                // trace with the smallest ratio
	Most   *Extreme `json:"most"`                 // trace with the largest ratio
	// SignTest is the two-sided p-value of the sign test: the probability of numbers Less and More as
	// uneven as these if both were equally likely; 1 if every trace is equal.
	SignTest float64 `json:"sign_test_p"`
	Pairs    []Pair  `json:"pairs" flat:"-"` // in the order of A
}

// Verdict is the answer for a figure.
type Verdict string

// The verdicts.
const (
	BLower  Verdict = "b_lower" // B is lower
	ALower  Verdict = "a_lower" // A is lower
	Equal   Verdict = "equal"   // on every trace
	Unclear Verdict = "unclear" // the traces do not decide
	TooFew  Verdict = "too_few" // fewer traces differ than an interval needs
)

// Extreme is a trace with an extreme ratio.
type Extreme struct {
	Trace string  `json:"trace"` // its name
	Ratio float64 `json:"ratio"` // B / A
}

// Run identifies the runs that are compared.
type Run struct {
	Trace       string  `json:"trace"`            // name of the trace
	TraceSHA256 string  `json:"trace_sha256"`     // hash of its decompressed file; empty: generated
	Device      *string `json:"device,omitempty"` // name of the device; nil: the table has one device
	Search      *string `json:"search,omitempty"` // how the minimum was searched; nil: the table has one search
}

// identity returns a text that differs between traces.
func (r *Run) identity() string { return cmp.Or(r.TraceSHA256, "name "+r.Trace) }

// Pair is a figure in two runs.
type Pair struct {
	Run              // of A
	A       *float64 `json:"a"`        // null: A failed or lacks the figure
	B       *float64 `json:"b"`        // null: B failed or lacks the figure
	FailedA bool     `json:"a_failed"` // whether A failed
	FailedB bool     `json:"b_failed"` // whether B failed
}

// Compared reports whether both runs have the figure or failed.
func (p *Pair) Compared() bool { return (p.A != nil || p.FailedA) && (p.B != nil || p.FailedB) }

// figure reads one figure from a run: nil and true if the run failed, nil and false if it lacks the
// figure.
type figure struct {
	name string
	of   func(r *Row) (value *float64, failed bool)
}

// figures are the compared figures. A run that did not complete has figures of a part of the trace
// only, but its minimum capacity counts.
var figures = []figure{
	{"min_capacity_bytes", func(r *Row) (*float64, bool) {
		if r.MinCapacity == nil {
			return nil, r.Refused > 0 || r.Probes > 0 || r.broken()
		}
		return new(float64(*r.MinCapacity)), false
	}},
	{"peak_reserved_bytes", completed(func(r *Row) *float64 { return new(float64(r.PeakReserved)) })},
	{"device_calls", completed(func(r *Row) *float64 { return new(float64(r.DeviceCalls)) })},
	{"device_time_ns", completed(func(r *Row) *float64 { return new(float64(r.DeviceTime)) })},
	{"ns_per_op", completed(func(r *Row) *float64 { return r.NsPerOp })},
}

func completed(of func(r *Row) *float64) func(r *Row) (*float64, bool) {
	return func(r *Row) (*float64, bool) {
		if !r.Starts || r.OOMs > 0 || r.Refused > 0 || r.broken() {
			return nil, true
		}
		return of(r), false
	}
}

// Compare compares B with A. It fails if a side has two runs of one trace, device and search, or if
// no trace is in both.
func Compare(a, b Side, o Options) (*Result, error) {
	r := &Result{Schema: Schema, Provenance: provenance.Read(), A: a, B: b, Confidence: confidence, Resamples: resamples,
		Seed: o.Seed, OnlyA: []Run{}, OnlyB: []Run{}}
	traces, err := r.match()
	if err != nil {
		return nil, err
	}
	if r.Traces = len(traces); r.Traces == 0 {
		return nil, fmt.Errorf("no trace of %s in %s is one of %s in %s: want traces with the same hash", a.Strategy, a.File,
			b.Strategy, b.File)
	}
	for _, f := range figures {
		if measured := diff.Measured(f.name); !measured || o.Time {
			c := Figure{Figure: f.name, Measured: measured}
			c.compare(traces, f, o.Seed)
			r.Figures = append(r.Figures, c)
		}
	}
	return r, nil
}

// match returns the pairs of runs of both sides by trace, in the order of A, and lists the other
// runs.
func (r *Result) match() (traces [][][2]*Row, err error) {
	rows := slices.Concat(r.A.rows, r.B.rows)
	devices := !slices.ContainsFunc(rows, func(r Row) bool { return r.Device == nil })
	searches := !slices.ContainsFunc(rows, func(r Row) bool { return r.Search == nil })
	keyOf := func(r *Row) (k key) {
		k.trace = r.identity()
		if devices {
			k.device = *r.Device
		}
		if searches {
			k.search = *r.Search
		}
		return k
	}
	ofA, err := r.A.byKey(keyOf)
	if err != nil {
		return nil, err
	}
	ofB, err := r.B.byKey(keyOf)
	if err != nil {
		return nil, err
	}
	order := map[string]int{} // of traces
	for i := range r.A.rows {
		a := &r.A.rows[i]
		k := keyOf(a)
		b := ofB[k]
		if b == nil {
			r.OnlyA = append(r.OnlyA, a.Run)
			continue
		}
		at, ok := order[k.trace]
		if !ok {
			at = len(traces)
			order[k.trace] = at
			traces = append(traces, nil)
		}
		traces[at] = append(traces[at], [2]*Row{a, b})
	}
	for i := range r.B.rows {
		if b := &r.B.rows[i]; ofA[keyOf(b)] == nil {
			r.OnlyB = append(r.OnlyB, b.Run)
		}
	}
	return traces, nil
}

// key identifies the runs that can be compared.
type key struct{ trace, device, search string }

func (s *Side) byKey(keyOf func(*Row) key) (map[key]*Row, error) {
	all := map[key]*Row{}
	for i := range s.rows {
		r := &s.rows[i]
		k := keyOf(r)
		if all[k] != nil {
			return nil, fmt.Errorf("%s: two runs of %s on %s, sha256 %.12s: want one for each trace, device and search", s.File,
				s.Strategy, r.Trace, r.TraceSHA256)
		}
		all[k] = r
	}
	return all, nil
}

// compare sets the figure over all traces.
func (c *Figure) compare(traces [][][2]*Row, f figure, seed uint64) {
	ofTrace := map[string]int64{}
	for _, runs := range traces {
		var t balance
		for _, r := range runs {
			p := Pair{Run: r[0].Run}
			p.A, p.FailedA = f.of(r[0])
			p.B, p.FailedB = f.of(r[1])
			c.Pairs = append(c.Pairs, p)
			t.add(&p)
		}
		c.count(&t)
		if len(t.logs) > 0 {
			log := int64(math.Round(mean(t.logs)))
			ofTrace[runs[0][0].identity()] = log
			c.extreme(runs[0][0].Trace, ratioOf(float64(log)))
		}
	}
	c.SignTest = digits(SignTest(c.Less, c.More))
	var logs []int64 // in an order that does not depend on the order of the rows
	for _, trace := range slices.Sorted(maps.Keys(ofTrace)) {
		logs = append(logs, ofTrace[trace])
	}
	if c.Ratios = len(logs); c.Ratios > 0 {
		c.Mean = new(ratioOf(mean(logs)))
		if c.Ratios >= LeastTraces {
			low, high := interval(logs, seed, resamples)
			c.Low, c.High = new(ratioOf(low)), new(ratioOf(high))
		}
		slices.Sort(logs)
		c.Median = new(ratioOf(float64(logs[(c.Ratios-1)/2]+logs[c.Ratios/2]) / 2))
	}
	c.Verdict = c.verdict()
}

// balance is a figure on one trace.
type balance struct {
	pairs, failedA, failedB int     // compared; failures of one side only
	sign                    int     // of the ratios 0 and infinity, which have no logarithm
	logs                    []int64 // of the other ratios
}

func (t *balance) add(p *Pair) {
	if !p.Compared() {
		return
	}
	t.pairs++
	switch {
	case p.FailedA && p.FailedB:
	case p.FailedA:
		t.failedA++
	case p.FailedB:
		t.failedB++
	case *p.A > 0 && *p.B > 0:
		t.logs = append(t.logs, logOf(*p.B / *p.A))
	default:
		t.sign += cmp.Compare(*p.B, *p.A)
	}
}

// count counts a trace.
func (c *Figure) count(t *balance) {
	if t.pairs == 0 {
		return
	}
	c.Traces++
	switch b := cmp.Or(t.failedB-t.failedA, t.sign, cmp.Compare(sum(t.logs), 0)); {
	case b < 0:
		c.Less++
	case b > 0:
		c.More++
	default:
		c.Equal++
	}
	switch {
	case t.failedA > t.failedB:
		c.FailedA++
	case t.failedB > t.failedA:
		c.FailedB++
	case len(t.logs) == 0 && t.sign == 0:
		c.Failed++
	}
}

func (c *Figure) extreme(trace string, ratio float64) {
	if c.Least == nil || ratio < c.Least.Ratio {
		c.Least = &Extreme{trace, ratio}
	}
	if c.Most == nil || ratio > c.Most.Ratio {
		c.Most = &Extreme{trace, ratio}
	}
}

// verdict decides by the interval of the mean, or by the sign test if failures leave too few
// ratios. A side that fails on more traces than the other is not the lower one.
func (c *Figure) verdict() Verdict {
	var b, a bool
	switch {
	case c.Traces == 0:
		return TooFew
	case c.Less+c.More == 0:
		return Equal
	case c.Low != nil:
		b, a = *c.High < 1, *c.Low > 1
	case c.SignTest <= 1-confidence:
		b, a = c.Less > c.More, c.Less < c.More
	case c.Less+c.More < LeastTraces:
		return TooFew
	}
	switch {
	case b && c.FailedB <= c.FailedA:
		return BLower
	case a && c.FailedA <= c.FailedB:
		return ALower
	}
	return Unclear
}
