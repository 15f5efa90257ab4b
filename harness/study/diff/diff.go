package diff

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/provenance"
)

// Schema is the schema of a [Diff] in JSON.
const Schema = "vramyard-diff/1"

// Unit is the unit of a figure.
type Unit string

// The units of figures.
const (
	UnitBytes  Unit = "bytes"
	UnitNs     Unit = "ns"
	UnitNumber Unit = "number" // a count or a ratio
)

// UnitOf derives the unit of a figure from its name.
func UnitOf(figure string) Unit {
	for part := range strings.SplitSeq(figure, ".") {
		switch part = "_" + part + "_"; {
		case strings.Contains(part, "_bytes_"):
			return UnitBytes
		case strings.Contains(part, "_ns_"):
			return UnitNs
		}
	}
	return UnitNumber
}

// Measured reports whether a figure is measured with a clock or from the Go heap, and so varies
// between equal runs. Times of driver calls are computed and do not count.
func Measured(figure string) bool {
	for part := range strings.SplitSeq(figure, ".") {
		if part == "latency" || part == "ratio_to_first" || strings.HasPrefix(part, "ns_per_") ||
			strings.HasPrefix(part, "heap_") {
			return true
		}
	}
	return false
}

// Change is a figure in A and B. Equal figures are included only on request.
type Change struct {
	Figure   string `json:"figure"`   // name
	Unit     Unit   `json:"unit"`     // unit of numeric values
	Measured bool   `json:"measured"` // varies between equal runs
	A        Value  `json:"a"`        // null also if missing
	B        Value  `json:"b"`        // null also if missing

	Absolute *float64 `json:"absolute"` // B - A; null unless both are finite numbers
	Relative *float64 `json:"relative"` // (B - A) / |A|; null also if A is 0
}

// Same reports whether both values are equal.
func (c *Change) Same() bool { return c.A.Equal(c.B) }

// Pair is a run of A and its counterpart in B.
type Pair struct {
	A       Name     `json:"a"`       // the run of A
	B       Name     `json:"b"`       // the run of B
	Match   Match    `json:"match"`   // how well their names match
	Changes []Change `json:"changes"` // figures: unmeasured ones first, then by relative change

	a, b *Run
}

// Diff is the difference of two results.
type Diff struct {
	Schema     string           `json:"schema"`     // the constant Schema
	Provenance provenance.Build `json:"provenance"` // of the comparing program
	Of         string           `json:"of"`         // schema of both results
	Settings   []Change         `json:"settings"`   // differences of settings, by name
	Pairs      []Pair           `json:"pairs"`      // in the order of A
	OnlyA      []Name           `json:"only_a"`     // runs without counterpart in B
	OnlyB      []Name           `json:"only_b"`     // runs without counterpart in A
	Verdicts   []Verdict        `json:"verdicts"`   // by condition

	onlyA, onlyB []*Run
}

// Compare compares b with a. All includes equal figures. It fails if the schemas differ.
func Compare(a, b *Result, all bool) (*Diff, error) {
	if a.Schema != b.Schema {
		return nil, fmt.Errorf("schema %s of A and %s of B: want results of the same command", a.Schema, b.Schema)
	}
	d := &Diff{
		Schema: Schema, Provenance: provenance.Read(), Of: a.Schema, Settings: changes(a.Settings, b.Settings, false),
		Pairs: []Pair{}, OnlyA: []Name{}, OnlyB: []Name{}, Verdicts: []Verdict{},
	}
	pairs, onlyA, onlyB := match(a.Runs, b.Runs)
	for _, m := range pairs {
		x, y := &a.Runs[m.a], &b.Runs[m.b]
		p := Pair{A: x.Name, B: y.Name, Match: m.match, Changes: changes(x.Figures, y.Figures, all), a: x, b: y}
		slices.SortStableFunc(p.Changes, larger)
		d.Pairs = append(d.Pairs, p)
	}
	for _, i := range onlyA {
		d.OnlyA, d.onlyA = append(d.OnlyA, a.Runs[i].Name), append(d.onlyA, &a.Runs[i])
	}
	for _, i := range onlyB {
		d.OnlyB, d.onlyB = append(d.OnlyB, b.Runs[i].Name), append(d.onlyB, &b.Runs[i])
	}
	return d, nil
}

// Equal reports whether both results have the same runs with equal figures, measured ones and
// settings excluded.
func (d *Diff) Equal() bool {
	exact, _ := d.Count()
	return exact == 0 && len(d.OnlyA) == 0 && len(d.OnlyB) == 0
}

// Count returns the numbers of unmeasured and measured figures that differ.
func (d *Diff) Count() (exact, measured int) {
	for _, p := range d.Pairs {
		for _, c := range p.Changes {
			switch {
			case c.Same():
			case c.Measured:
				measured++
			default:
				exact++
			}
		}
	}
	return exact, measured
}

// changes compares two sorted lists of figures.
func changes(a, b []Figure, all bool) []Change {
	list := []Change{}
	for len(a)+len(b) > 0 {
		var c Change
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = strings.Compare(a[0].Name, b[0].Name)
		}
		if order <= 0 {
			c.Figure, c.A, a = a[0].Name, a[0].Value, a[1:]
		}
		if order >= 0 {
			c.Figure, c.B, b = b[0].Name, b[0].Value, b[1:]
		}
		if c.Same() && !all {
			continue
		}
		c.Unit, c.Measured = UnitOf(c.Figure), Measured(c.Figure)
		c.distance()
		list = append(list, c)
	}
	return list
}

func (c *Change) distance() {
	x, y := c.A.Number(), c.B.Number()
	if x == nil || y == nil || c.A.Kind() != c.B.Kind() {
		return
	}
	apart := new(big.Rat).Sub(y, x)
	c.Absolute = finite(apart)
	if x.Sign() != 0 {
		c.Relative = finite(apart.Quo(apart, new(big.Rat).Abs(x)))
	}
}

// finite converts a number to float64; nil if it overflows.
func finite(n *big.Rat) *float64 {
	x, _ := n.Float64()
	if math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// larger orders changes: unmeasured ones first, then those without a relative change, then by size.
func larger(x, y Change) int {
	measured := map[bool]int{true: 1}
	return cmp.Or(cmp.Compare(measured[x.Measured], measured[y.Measured]), cmp.Compare(weight(&y), weight(&x)))
}

func weight(c *Change) float64 {
	switch {
	case c.Same():
		return -1
	case c.Relative == nil:
		return math.Inf(1)
	}
	return math.Abs(*c.Relative)
}
