package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/internal/units"
)

// ResultDiff writes the differences of two results named a and b, and the outcomes of the
// conditions.
func ResultDiff(w io.Writer, a, b string, d *diff.Diff) error {
	out := &lines{w: w}
	out.printf("A %s\nB %s\n%s, %s compared\n", units.Printable(a), units.Printable(b), d.Of,
		units.Several(len(d.Pairs), "run"))
	for _, c := range d.Settings {
		out.printf("%s: A %s, B %s\n", units.Printable(c.Figure), figureText(&c, c.A), figureText(&c, c.B))
	}
	onlyText(out, "A", d.OnlyA)
	onlyText(out, "B", d.OnlyB)
	for _, p := range d.Pairs {
		if len(p.Changes) > 0 || p.Match != diff.MatchAll {
			pairText(out, &p)
		}
	}
	exact, measured := d.Count()
	switch {
	case d.Equal() && measured == 0:
		out.printf("no figure differs\n")
	case d.Equal():
		out.printf("no figure differs except %s\n", units.Several(measured, "measured time"))
	default:
		verb := "differ"
		if exact == 1 {
			verb = "differs"
		}
		out.printf("%s %s, and %s\n", units.Several(exact, "figure"), verb, units.Several(measured, "measured time"))
	}
	verdictText(out, d.Verdicts)
	return out.err
}

// onlyText lists the runs of one side only.
func onlyText(out *lines, side string, names []diff.Name) {
	for _, n := range names {
		out.printf("only in %s: %s on %s%s\n", side, units.Printable(n.Strategy), units.Printable(n.Trace), hashText(n.Hash))
	}
}

// hashText returns the start of a hash, to follow a name.
func hashText(hash string) string {
	if hash == "" {
		return ""
	}
	return ", sha256 " + units.Printable(hash[:min(len(hash), 12)])
}

// pairText writes a pair of runs and the figures that differ.
func pairText(out *lines, p *diff.Pair) {
	out.printf("\n%s on %s%s", units.Printable(p.A.Strategy), units.Printable(p.A.Trace), hashText(p.A.Hash))
	switch p.Match {
	case diff.MatchAll:
	case diff.MatchConfig:
		a, b := configText(p.A.Config, p.B.Config)
		out.printf("; %s: A %s, B %s", p.Match, units.Printable(a), units.Printable(b))
	default:
		out.printf("; %s: B %s on %s%s", p.Match, units.Printable(p.B.Strategy), units.Printable(p.B.Trace),
			hashText(p.B.Hash))
	}
	out.printf("\n")
	if len(p.Changes) == 0 {
		return
	}
	s := NewSheet("", changeColumns, p.Changes)
	out.printf("%s\n", s.Terminal(out.w))
}

// configText returns the fields in which two configurations differ.
func configText(a, b json.RawMessage) (string, string) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return string(a), string(b)
	}
	for name, value := range x {
		if other, ok := y[name]; ok && string(other) == string(value) {
			delete(x, name)
			delete(y, name)
		}
	}
	left, _ := json.Marshal(x) // decoded values can be encoded
	right, _ := json.Marshal(y)
	return string(left), string(right)
}

// changeColumns are the columns of the figures that differ.
var changeColumns = []ColumnOf[diff.Change]{
	Texts("figure", "", func(c diff.Change) string { return c.Figure }),
	figures("A", "", func(c diff.Change) Cell { return Cell{Text: figureText(&c, c.A)} }),
	figures("B", "", func(c diff.Change) Cell { return Cell{Text: figureText(&c, c.B)} }),
	figures("change", "B - A", func(c diff.Change) Cell {
		return optional(c.Absolute, func(x float64) Cell { return number(signed(x, c.Unit), x) })
	}),
	figures("relative", "(B - A) / A", func(c diff.Change) Cell {
		return optional(c.Relative, func(x float64) Cell { return number(fmt.Sprintf("%+.2f %%", 100*x), x) })
	}),
	Texts("", "", func(c diff.Change) string {
		switch {
		case c.Measured:
			return "measured"
		case c.Same():
			return "same"
		}
		return ""
	}),
}

// figureText formats a value in the unit of its figure.
func figureText(c *diff.Change, v diff.Value) string {
	switch v.Kind() {
	case "", diff.KindNull:
		return none
	case diff.KindList:
		return strconv.Itoa(v.Items()) + " items"
	case diff.KindNumber:
		x, _ := v.Number().Float64()
		if c.Unit == diff.UnitNumber && v.Number().IsInt() {
			return v.String()
		}
		return amount(x, c.Unit)
	}
	const most = 40 // characters of a text in a table
	return clipped(units.Printable(v.String()), most)
}

func signed(x float64, unit diff.Unit) string {
	sign := "+"
	if x < 0 {
		sign = "-"
	}
	if n := new(big.Rat); n.SetFloat64(x) != nil && unit == diff.UnitNumber && n.IsInt() {
		return sign + units.Fixed(math.Abs(x), 0)
	}
	return sign + amount(math.Abs(x), unit)
}

func amount(x float64, unit diff.Unit) string {
	whole := x >= 0 && x < 1<<63
	switch {
	case unit == diff.UnitBytes && whole && x == math.Trunc(x):
		return units.Bytes(device.Size(x))
	case unit == diff.UnitBytes:
		return units.Fixed(x, 2) + " B"
	case unit == diff.UnitNs && whole && x >= 1e3:
		return units.Nanoseconds(uint64(x))
	case unit == diff.UnitNs:
		return units.Fixed(x, 2) + " ns"
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// verdictText writes the outcomes of the conditions.
func verdictText(out *lines, verdicts []diff.Verdict) {
	for _, v := range verdicts {
		state := "kept"
		if len(v.Violations) > 0 {
			state = "VIOLATED"
		}
		out.printf("%s: %s, %d of %s", units.Printable(v.Condition.String()), state, len(v.Violations),
			units.Several(v.Judged, "run"))
		if v.Unjudged > 0 {
			out.printf(", %d without a figure in A to compare with", v.Unjudged)
		}
		out.printf("\n")
		for _, x := range v.Violations {
			c := &diff.Change{Unit: diff.UnitOf(v.Condition.Figure)}
			out.printf("  %s on %s: A %s, B %s: %s\n", units.Printable(x.Strategy), units.Printable(x.Trace), figureText(c, x.A),
				figureText(c, x.B), x.Why)
		}
	}
}
