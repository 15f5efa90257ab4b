package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/harness/study/stats"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// statsWords are the label of each compared figure and the verb of the lower side.
var statsWords = map[string]struct{ label, lower string }{
	"min_capacity_bytes":  {"min capacity", "needs less memory than"},
	"peak_reserved_bytes": {"peak reserved", "reserves less memory than"},
	"device_calls":        {"device calls", "makes fewer device calls than"},
	"device_time_ns":      {"device time", "spends less time in device calls than"},
	"ns_per_op":           {"ns/op", "takes less time for an operation than"},
}

// StatsTable returns the figures, one row for each.
func StatsTable(r *stats.Result) *flat.Table {
	type row struct {
		A stats.Side `json:"a"`
		B stats.Side `json:"b"`
		*stats.Figure
	}
	rows := make([]row, len(r.Figures))
	for i := range rows {
		rows[i] = row{r.A, r.B, &r.Figures[i]}
	}
	return flat.Of(rows)
}

// Stats writes a sentence for each figure, their table, the failures, and the runs without a
// partner.
func Stats(w io.Writer, r *stats.Result) error {
	out := &lines{w: w}
	for i := range r.Figures {
		out.printf("%s\n", statsSentence(StyleOf(w), r, &r.Figures[i]))
	}
	s := NewSheet("", statsColumns, r.Figures)
	fileA := ""
	if r.A.File != r.B.File {
		fileA = " in " + units.Printable(r.A.File)
	}
	out.printf("\nA is %s%s, B is %s in %s.\n%s\n", units.Printable(r.A.Strategy), fileA, units.Printable(r.B.Strategy),
		units.Printable(r.B.File), s.Terminal(w))
	for i := range r.Figures {
		f := &r.Figures[i]
		if f.Unknown > 0 {
			out.printf("%s is not known on %s\n", statsWords[f.Figure].label, units.Several(f.Unknown, "trace"))
		}
		if f.Measured {
			out.printf("%s is measured and varies between equal runs; \"vramyard bench\" measures in several rounds\n",
				statsWords[f.Figure].label)
		}
	}
	statsFailures(out, r)
	for _, n := range r.OnlyA {
		out.printf("only in A: %s\n", statsRun(&n))
	}
	for _, n := range r.OnlyB {
		out.printf("only in B: %s\n", statsRun(&n))
	}
	return out.err
}

// statsNames returns the names of the sides in sentences.
func statsNames(r *stats.Result) (a, b string) {
	if r.A.Strategy == r.B.Strategy {
		return "A", "B"
	}
	return units.Printable(r.A.Strategy), units.Printable(r.B.Strategy)
}

// statsSentence returns the answer for a figure, and how sure it is.
func statsSentence(style Style, r *stats.Result, f *stats.Figure) string {
	words := statsWords[f.Figure]
	lower, other := statsNames(r)
	wins, completes, mean, low, high := f.More, f.CompletesA, f.Mean, f.Low, f.High
	if f.Less > f.More || f.Less == f.More && f.Mean != nil && *f.Mean < 1 {
		wins, completes, lower, other = f.Less, f.CompletesB, other, lower
	} else {
		mean, low, high = inverse(mean), inverse(high), inverse(low)
	}
	s := words.label + ": "
	left := statsLeft(r, f)
	switch {
	case f.Unknown == r.Traces:
		return s + "not known on any trace."
	case f.Failed == len(f.Pairs):
		return s + "both fail on every trace."
	case f.Traces == 0:
		return s + "compared on no trace." + left
	}
	both := f.Traces - f.CompletesA - f.CompletesB
	traces := units.Several(both, "trace")
	if f.FailedA+f.FailedB+f.Failed > 0 {
		traces += " that both complete"
	}
	switch f.Verdict {
	case stats.Equal:
		return s + fmt.Sprintf("equal on all of %s.", traces) + left
	case stats.Unclear:
		s += "no clear difference. "
	case stats.TooFew:
		s += "too few traces to be sure. "
	default:
		lower = style.Paint(Good, lower)
	}
	test := fmt.Sprintf("sign test p = %.2g", f.SignTest)
	if both == 0 {
		return s + fmt.Sprintf("%s completes %d of %s, %s %d (%s).", lower, completes, units.Several(f.Traces, "trace"),
			other, f.Traces-completes, test) + left
	}
	s += fmt.Sprintf("%s %s %s on %d of %s", lower, words.lower, other, wins-completes, traces)
	if f.Equal > 0 {
		s += fmt.Sprintf(", equal on %d", f.Equal)
	}
	if mean == nil {
		return s + " (" + test + ")." + left
	}
	if *mean > 1 {
		s += ", but "
	} else {
		s += ": "
	}
	s += ratioText(*mean) + " by the geometric mean ("
	switch {
	case low == nil:
		s += fmt.Sprintf("no 95 %% interval, which needs %d traces", stats.LeastTraces)
	case *low == *high:
		s += "no spread"
	default:
		s += "95 % interval " + rangeText(*low, *high)
	}
	return s + "; " + test + ")." + left
}

func inverse(x *float64) *float64 {
	if x == nil {
		return nil
	}
	return new(1 / *x)
}

// statsLeft returns sentences with the traces that only one side completes, if they count, and with
// the pairs of runs that are left out.
func statsLeft(r *stats.Result, f *stats.Figure) (text string) {
	a, b := statsNames(r)
	var all []string
	list := func(format, name string, n int) {
		if n > 0 {
			all = append(all, fmt.Sprintf(format, name, n))
		}
	}
	switch completes := f.CompletesA + f.CompletesB; {
	case completes == 0:
		list("%s fails on %d", a, f.FailedA)
		list("%s fails on %d", b, f.FailedB)
	case completes < f.Traces:
		list("%s completes %d more", a, f.CompletesA)
		list("%s completes %d more", b, f.CompletesB)
		text = " " + strings.Join(all, ", ") + "."
		all = nil
	}
	list("%s fail on %d", "both", f.Failed)
	list("%s holds its whole device on %d", a, f.WholeA)
	list("%s holds its whole device on %d", b, f.WholeB)
	if len(all) == 0 {
		return text
	}
	text += " Left out: " + strings.Join(all, ", ")
	if len(f.Pairs) > r.Traces {
		text += fmt.Sprintf(" of %d pairs of runs", len(f.Pairs))
	}
	return text + "."
}

// ratioText describes a ratio as a difference in percent or, beyond a factor of 2, as a multiple.
func ratioText(ratio float64) string {
	switch percent := 100 * math.Abs(ratio-1); {
	case ratio < 0.5:
		return "1/" + shortNumber(1/ratio, 3) + " of it"
	case ratio > 2:
		return shortNumber(ratio, 3) + " × as much"
	case ratio < 1:
		return shortNumber(percent, 2) + " % less"
	case ratio > 1:
		return shortNumber(percent, 2) + " % more"
	}
	return "equal"
}

// shortNumber formats a positive number with at least some significant digits.
func shortNumber(x float64, significant int) string {
	if x < 1 {
		return strconv.FormatFloat(x, 'g', significant, 64)
	}
	digits := int(math.Log10(x)) + 1 // before the point
	return units.Fixed(x, max(0, significant-digits))
}

// rangeText describes the range between two ratios. The unit is written once if both have it.
func rangeText(low, high float64) string {
	from, to := ratioText(low), ratioText(high)
	if high < 1 && low >= 0.5 {
		from, to = to, from // the smaller difference first
	}
	for _, unit := range []string{" of it", " × as much", " % less", " % more"} {
		if strings.HasSuffix(from, unit) && strings.HasSuffix(to, unit) {
			from = strings.TrimSuffix(from, unit)
		}
	}
	return from + " to " + to
}

// statsRun returns the trace of a run, with its device and its search if they are known.
func statsRun(r *stats.Run) string {
	text := units.Printable(r.Trace) + hashText(r.TraceSHA256)
	if r.Device != nil {
		text += ", " + units.Printable(*r.Device)
	}
	if r.Search != nil {
		text += ", " + units.Printable(*r.Search)
	}
	return text
}

// statsFailures lists the runs that failed.
func statsFailures(out *lines, r *stats.Result) {
	for i := range r.Figures[0].Pairs {
		for side, strategy := range []string{r.A.Strategy, r.B.Strategy} {
			var in []string
			for _, f := range r.Figures {
				if p := &f.Pairs[i]; side == 0 && p.FailedA || side == 1 && p.FailedB {
					in = append(in, statsWords[f.Figure].label)
				}
			}
			if len(in) == 0 {
				continue
			}
			out.printf("%s: %s fails on %s", "AB"[side:side+1], units.Printable(strategy), statsRun(&r.Figures[0].Pairs[i].Run))
			if len(in) < len(r.Figures) {
				out.printf("; no figure for %s", strings.Join(in, ", "))
			}
			out.printf("\n")
		}
	}
}

// statsColumns are the columns of the table: a row for each figure.
var statsColumns = []ColumnOf[stats.Figure]{
	Texts("figure", "", func(f stats.Figure) string { return statsWords[f.Figure].label }),
	figures("traces", "", func(f stats.Figure) Cell { return countCell(uint64(f.Traces)) }),
	figures("B less", "traces on which B is lower", func(f stats.Figure) Cell { return countCell(uint64(f.Less)) }),
	figures("equal", "", func(f stats.Figure) Cell { return countCell(uint64(f.Equal)) }),
	figures("B more", "traces on which B is higher", func(f stats.Figure) Cell { return countCell(uint64(f.More)) }),
	figures("B / A", "geometric mean of the ratios", func(f stats.Figure) Cell { return timesCell(f.Mean) }),
	figures("95 % interval", "bootstrap interval of the mean", func(f stats.Figure) Cell {
		return optional(f.Low, func(low float64) Cell {
			return Cell{Text: timesText(low) + " to " + timesText(*f.High), Number: true}
		})
	}),
	figures("median", "median of the ratios", func(f stats.Figure) Cell { return timesCell(f.Median) }),
	Texts("best for B", "smallest ratio", func(f stats.Figure) string { return extremeText(f.Least) }),
	Texts("worst for B", "largest ratio", func(f stats.Figure) string { return extremeText(f.Most) }),
	figures("sign test", "two-sided p-value", func(f stats.Figure) Cell {
		return number(fmt.Sprintf("%.2g", f.SignTest), f.SignTest)
	}),
}

func extremeText(e *stats.Extreme) string {
	if e == nil {
		return none
	}
	return timesText(e.Ratio) + " " + e.Trace
}

// timesText formats a ratio with three decimals, or with three digits if it is small or large.
func timesText(x float64) string {
	if x < 0.1 || x >= 100 {
		return shortNumber(x, 3)
	}
	return units.Fixed(x, 3)
}

func timesCell(x *float64) Cell {
	return optional(x, func(x float64) Cell { return number(timesText(x), x) })
}
