package diff

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/internal/nearest"
)

// absence is the meaning of null in a figure.
type absence uint8

const (
	unknown absence = iota // missing
	endless                // infinite: no device is large enough
	nothing                // 0: none occurred
)

// absences lists the figures in which null has a meaning.
var absences = map[string]absence{
	figureMinimum:          endless,
	"smallest_arena_bytes": endless,
	"arena_ratio":          endless,
	"times_bound":          endless,
	figureCompletes:        endless,
	"failure_above_bytes":  nothing,
	"fails_at_bytes":       nothing,
}

// A minimum, and its bounds if the search is unfinished.
const (
	figureMinimum   = "min_capacity_bytes"
	figureCompletes = "completes_at_bytes"
)

// known returns a figure for judging. An unfinished minimum is unknown instead of infinite.
func (r *Run) known(name string) Value {
	v := r.Figure(name)
	if name == figureMinimum && v.Kind() == KindNull && r.Figure(figureCompletes).Kind() == KindNumber {
		return Value{}
	}
	return v
}

// Verdict is the outcome of a condition.
type Verdict struct {
	Condition Condition `json:"condition"` // the condition; as text in JSON
	Judged    int       `json:"judged"`    // runs it was applied to
	// selected runs without a figure in A to compare with
	Unjudged   int         `json:"unjudged"`
	Violations []Violation `json:"violations"` // runs that violate it
}

// Violation is a run that violates a condition.
type Violation struct {
	Name
	A   Value  `json:"a"`   // figure in A; null also if missing
	B   Value  `json:"b"`   // figure in B; null also if missing
	Why string `json:"why"` // reason
}

// errNothingJudged: the condition could not have failed.
var errNothingJudged = errors.New("no selected run has this figure to judge")

// Judge applies conditions and stores the verdicts. A run missing in B violates every condition
// that selects it. A run missing in A is judged by absolute limits only. It fails for unknown
// figures, wrong units, and conditions that apply to no run.
func (d *Diff) Judge(conditions []Condition) error {
	for i := range conditions {
		c := &conditions[i]
		v, err := d.judge(c)
		if err != nil {
			return fmt.Errorf("condition %q: %w", c, err)
		}
		d.Verdicts = append(d.Verdicts, v)
	}
	return nil
}

// Violated returns the number of violated conditions.
func (d *Diff) Violated() int {
	n := 0
	for _, v := range d.Verdicts {
		if len(v.Violations) > 0 {
			n++
		}
	}
	return n
}

func (d *Diff) judge(c *Condition) (Verdict, error) {
	v := Verdict{Condition: *c, Violations: []Violation{}}
	if known := d.known(); !slices.Contains(known, c.Figure) {
		return v, fmt.Errorf("unknown figure %q: %s", c.Figure, nearest.Want(c.Figure, known))
	}
	if _, err := c.amount(); err != nil {
		return v, err
	}
	for _, p := range d.Pairs {
		if c.selects(p.B) {
			v.add(c, p.B, p.a.known(c.Figure), p.b.known(c.Figure))
		}
	}
	for _, r := range d.onlyA {
		if c.selects(r.Name) {
			v.Judged++
			v.Violations = append(v.Violations, Violation{r.Name, r.Figure(c.Figure), Value{}, "B has no such run"})
		}
	}
	for _, r := range d.onlyB {
		if c.selects(r.Name) {
			v.add(c, r.Name, Value{}, r.known(c.Figure))
		}
	}
	if v.Judged == 0 {
		return v, errNothingJudged
	}
	return v, nil
}

// known returns the figures that conditions can name, sorted.
func (d *Diff) known() []string {
	var names []string
	add := func(r *Run) {
		for _, f := range r.Figures {
			switch f.Value.Kind() {
			case KindNumber, KindBool, KindNull:
				names = append(names, f.Name)
			}
		}
	}
	for _, p := range d.Pairs {
		add(p.a)
		add(p.b)
	}
	for _, r := range slices.Concat(d.onlyA, d.onlyB) {
		add(r)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (v *Verdict) add(c *Condition, n Name, x, y Value) {
	why, judged := c.judge(x, y)
	if !judged {
		v.Unjudged++
		return
	}
	v.Judged++
	if why != "" {
		v.Violations = append(v.Violations, Violation{n, x, y, why})
	}
}

// judge returns the reason of a violation, or "", and whether the values could be judged.
func (c *Condition) judge(x, y Value) (why string, judged bool) {
	null := absences[c.Figure]
	if null == nothing {
		x, y = x.orZero(), y.orZero()
	}
	a, b := x.Number(), y.Number()
	endlessA, endlessB := null == endless && x.Kind() == KindNull, null == endless && y.Kind() == KindNull
	beyond := false
	switch {
	case a != nil && endlessB:
		return "A completes and B does not", true
	case b == nil && !endlessB:
		if a == nil && !endlessA {
			return "", false
		}
		return "B has no value", true
	case c.Sign != "" && a == nil && !endlessA:
		return "", false
	case endlessB && c.Sign != "": // A is infinite too: no change
	case endlessB:
		beyond = c.test(1)
	case endlessA && c.Sign != "":
		beyond = c.test(-1)
	default:
		limit, _ := c.amount() // its error was checked before
		beyond = c.holds(a, b, limit)
	}
	if beyond {
		why = "beyond the limit"
	}
	return why, true
}

func (v Value) orZero() Value {
	if v.kind == KindNull {
		v, _ = number("0")
	}
	return v
}
