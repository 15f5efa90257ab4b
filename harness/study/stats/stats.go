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

// Figure compares one figure over all traces. For every figure less is better. A pair of runs is
// left out if one of them failed or held its whole device; only in the minimum capacity, the side
// that fails alone is the higher one. If a trace has several pairs, on several devices or by
// several searches, its ratio is their geometric mean; if one side fails alone more often, that
// side is the higher one, and there is no ratio.
type Figure struct {
	Figure   string  `json:"figure"`       // name of the column
	Measured bool    `json:"measured"`     // varies between equal runs
	Verdict  Verdict `json:"verdict"`      // which side is lower
	Traces   int     `json:"trace_count"`  // traces that are compared
	Less     int     `json:"b_less_count"` // traces on which B is lower
	Equal    int     `json:"equal_count"`  // traces on which both are equal
	More     int     `json:"b_more_count"` // traces on which B is higher

	CompletesA int `json:"a_completes_count"`    // traces on which B is higher because it fails more often
	CompletesB int `json:"b_completes_count"`    // traces on which B is lower because A fails more often
	FailedA    int `json:"a_failed_count"`       // pairs of which only A failed
	FailedB    int `json:"b_failed_count"`       // pairs of which only B failed
	Failed     int `json:"both_failed_count"`    // pairs of which both failed
	WholeA     int `json:"a_whole_device_count"` // pairs left out because A held its whole device
	WholeB     int `json:"b_whole_device_count"` // pairs left out because B held its whole device
	Unknown    int `json:"unknown_count"`        // traces on which a side lacks the figure
	Ratios     int `json:"ratio_count"`          // traces with a ratio, which the next figures summarize

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
	A       *float64 `json:"a"`              // null: A failed, lacks the figure, or held its whole device
	B       *float64 `json:"b"`              // null: B failed, lacks the figure, or held its whole device
	FailedA bool     `json:"a_failed"`       // whether A failed
	FailedB bool     `json:"b_failed"`       // whether B failed
	WholeA  bool     `json:"a_whole_device"` // whether A holds its whole device
	WholeB  bool     `json:"b_whole_device"` // whether B holds its whole device
}

// figure reads one figure from a run.
type figure struct {
	name   string
	failed func(r *Row) bool
	of     func(r *Row) *float64 // nil: the run lacks the figure
	loses  bool                  // the side that fails alone is the higher one
	whole  bool                  // of the device if the run held all of it
}

// read returns the figure of a run, nil if it failed, lacks the figure, or held its whole device.
func (f *figure) read(r *Row) (value *float64, failed, whole bool) {
	if f.failed(r) {
		return nil, true, false
	}
	if f.whole && r.wholeDevice() {
		return nil, false, true
	}
	return f.of(r), false, false
}

// figures are the compared figures. A run that did not complete has figures of a part of the trace
// only, but its minimum capacity counts.
var figures = []figure{
	{name: "min_capacity_bytes", failed: (*Row).unfit, loses: true, of: func(r *Row) *float64 {
		if r.MinCapacity == nil {
			return nil
		}
		return new(float64(*r.MinCapacity))
	}},
	{name: "peak_reserved_bytes", failed: (*Row).incomplete, whole: true,
		of: func(r *Row) *float64 { return new(float64(r.PeakReserved)) }},
	{name: "device_calls", failed: (*Row).incomplete, of: func(r *Row) *float64 { return new(float64(r.DeviceCalls)) }},
	{name: "device_time_ns", failed: (*Row).incomplete, of: func(r *Row) *float64 { return new(float64(r.DeviceTime)) }},
	{name: "ns_per_op", failed: (*Row).incomplete, of: func(r *Row) *float64 { return r.NsPerOp }},
}

// Compare compares B with A. It fails if a side has two runs of one trace, device and search, if no
// trace is in both, and if times are to be compared that a side does not have.
func Compare(a, b Side, o Options) (*Result, error) {
	r := &Result{Schema: Schema, Provenance: provenance.Read(), A: a, B: b, Confidence: confidence, Resamples: resamples,
		Seed: o.Seed, OnlyA: []Run{}, OnlyB: []Run{}}
	for _, s := range []*Side{&a, &b} {
		if o.Time && !slices.ContainsFunc(s.rows, func(r Row) bool { return r.NsPerOp != nil }) {
			return nil, fmt.Errorf("--time: %s has no column ns_per_op: want a table of compare; \"sweep merge --times\" "+
				"writes times to a table of their own", s.File)
		}
	}
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
			return nil, s.twice(all[k], r)
		}
		all[k] = r
	}
	return all, nil
}

// twice returns the error for two runs that a run of the other side could be compared with.
func (s *Side) twice(first, second *Row) error {
	on := first.Trace
	if second.Trace != first.Trace {
		on += " and " + second.Trace + ", which are the same trace"
	}
	if first.TraceSHA256 != "" {
		on += fmt.Sprintf(", sha256 %.12s", first.TraceSHA256)
	}
	want := "one for each trace, device and search"
	switch {
	case different(first.Device, second.Device):
		want = fmt.Sprintf("one: choose a device with --device, such as %q or %q", *first.Device, *second.Device)
	case different(first.Search, second.Search):
		want = fmt.Sprintf("one: choose a search with --search, such as %q or %q", *first.Search, *second.Search)
	}
	return fmt.Errorf("%s: two runs of %s on %s: want %s", s.File, s.Strategy, on, want)
}

func different(a, b *string) bool { return a != nil && b != nil && *a != *b }

// compare sets the figure over all traces.
func (c *Figure) compare(traces [][][2]*Row, f figure, seed uint64) {
	ofTrace := map[string]int64{}
	for _, runs := range traces {
		var t balance
		for _, r := range runs {
			p := Pair{Run: r[0].Run}
			p.A, p.FailedA, p.WholeA = f.read(r[0])
			p.B, p.FailedB, p.WholeB = f.read(r[1])
			c.Pairs = append(c.Pairs, p)
			c.add(&p, &t)
		}
		if !f.loses {
			t.failed = 0
		}
		c.count(&t)
		if t.failed == 0 && len(t.logs) > 0 {
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
	compared, left int     // pairs with both values, and those left out
	failed         int     // failures of B alone, less those of A alone
	sign           int     // of the ratios 0 and infinity, which have no logarithm
	logs           []int64 // of the other ratios
}

// add adds a pair to a trace, or counts why it is left out.
func (c *Figure) add(p *Pair, t *balance) {
	hasA, hasB := p.A != nil || p.FailedA || p.WholeA, p.B != nil || p.FailedB || p.WholeB
	switch {
	case !hasA || !hasB:
		return
	case p.A != nil && p.B != nil:
		t.compared++
		if *p.A > 0 && *p.B > 0 {
			t.logs = append(t.logs, logOf(*p.B / *p.A))
		} else {
			t.sign += cmp.Compare(*p.B, *p.A)
		}
		return
	case p.FailedA && p.FailedB:
		c.Failed++
	case p.FailedA:
		c.FailedA++
		t.failed--
	case p.FailedB:
		c.FailedB++
		t.failed++
	default:
		if p.WholeA {
			c.WholeA++
		}
		if p.WholeB {
			c.WholeB++
		}
	}
	t.left++
}

// count counts a trace.
func (c *Figure) count(t *balance) {
	if t.compared == 0 && t.failed == 0 {
		if t.left == 0 {
			c.Unknown++
		}
		return
	}
	c.Traces++
	switch b := cmp.Or(t.failed, t.sign, cmp.Compare(sum(t.logs), 0)); {
	case b < 0:
		c.Less++
	case b > 0:
		c.More++
	default:
		c.Equal++
	}
	switch {
	case t.failed < 0:
		c.CompletesB++
	case t.failed > 0:
		c.CompletesA++
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
// ratios. A side that completes fewer traces than the other is not the lower one.
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
	case b && c.CompletesA <= c.CompletesB:
		return BLower
	case a && c.CompletesB <= c.CompletesA:
		return ALower
	}
	return Unclear
}
