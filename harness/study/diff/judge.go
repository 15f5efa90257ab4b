package diff

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vramyard/vramyard/internal/nearest"
)

// absence is what null means in a figure.
type absence uint8

const (
	unknown absence = iota // there is no such figure
	endless                // larger than any number: no device is large enough
	nothing                // zero: none was seen
)

// absences holds the figures in which null is more than that nothing is known.
var absences = map[string]absence{
	figureMinimum:          endless,
	"smallest_arena_bytes": endless,
	"arena_ratio":          endless,
	"times_bound":          endless,
	figureCompletes:        endless,
	"failure_above_bytes":  nothing,
	"fails_at_bytes":       nothing,
}

// The figures of a minimum, and of what is known where it was not searched to the end.
const (
	figureMinimum   = "min_capacity_bytes"
	figureCompletes = "completes_at_bytes"
)

// known returns a figure as it is judged: a minimum that was not searched to the end is not known,
// and not one that no device has.
func (r *Run) known(name string) Value {
	v := r.Figure(name)
	if name == figureMinimum && v.Kind() == KindNull && r.Figure(figureCompletes).Kind() == KindNumber {
		return Value{}
	}
	return v
}

// Verdict is what became of one condition.
type Verdict struct {
	Condition Condition `json:"condition"` // what was judged; in JSON in the form that [ParseCondition] reads
	Judged    int       `json:"judged"`    // runs that it was applied to
	// runs that it selects and cannot be applied to, because A has no figure to compare with
	Unjudged   int         `json:"unjudged"`
	Violations []Violation `json:"violations"` // runs in which it holds
}

// Violation is a run of which a condition holds.
type Violation struct {
	Name
	A   Value  `json:"a"`   // the figure in A; null also if there is none
	B   Value  `json:"b"`   // the figure in B; likewise
	Why string `json:"why"` // what is wrong, in words
}

// errNothingJudged says that a condition could not have failed.
var errNothingJudged = errors.New("no run that it is about has anything to judge")

// Judge applies conditions and keeps the verdicts. A run of A that B lacks violates every condition
// that is about it. A run that only B has is judged by limits that are no changes. It fails for a
// figure that no run has, for a unit that the figure is not in, and for a condition that applies to
// no run.
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

// Violated returns how many of the conditions judged hold of some run.
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

// known returns the figures of all runs that a condition can be about, sorted.
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

// judge returns what is wrong with a figure that is x in A and y in B, "" if nothing is, and
// whether there was anything to judge.
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
	case endlessB && c.Sign != "": // in A too: nothing has changed
	case endlessB:
		beyond = c.test(1)
	case endlessA && c.Sign != "":
		beyond = c.test(-1)
	default:
		limit, _ := c.amount() // its error was looked at for the condition as a whole
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
