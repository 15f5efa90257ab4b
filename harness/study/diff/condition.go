package diff

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Condition is a failure criterion for the runs of B, such as "min_capacity_bytes>+2%".
// [ParseCondition] creates it.
//
//	condition = figure operator limit [ "@" strategy [ "@" trace ] ]
//	operator  = ">" | ">=" | "<" | "<=" | "==" | "!="
//	limit     = [ "+" | "-" ] number [ unit ]
//	unit      = "%" | "B" | "KiB" | "MiB" | "GiB" | "TiB" | "ns" | "us" | "ms" | "s"
//
// A limit with a sign is relative to the figure in A, otherwise it is absolute. Percentages are
// relative changes. The default units are bytes or nanoseconds, as the figure has them. Strategy
// and trace are patterns that select runs: "*" matches any characters, "?" one.
type Condition struct {
	Figure   string // name
	Operator string // one of the six
	Sign     string // "+" or "-": relative to A; "": absolute
	Number   string // decimal
	Unit     string // unit of the limit; "": the figure's own
	Strategy string // pattern of strategies; "": all
	Trace    string // pattern of traces; "": all
}

type operator struct {
	name  string
	holds func(order int) bool
}

// operators maps each operator to the orders it accepts. Longer ones precede their prefixes.
var operators = []operator{
	{">=", func(o int) bool { return o >= 0 }},
	{"<=", func(o int) bool { return o <= 0 }},
	{"==", func(o int) bool { return o == 0 }},
	{"!=", func(o int) bool { return o != 0 }},
	{">", func(o int) bool { return o > 0 }},
	{"<", func(o int) bool { return o < 0 }},
}

// percent marks a relative change.
const percent = "%"

// factors are units of limits in units of figures.
var factors = []struct {
	name string
	of   Unit
	is   int64
}{
	{"B", UnitBytes, 1}, {"KiB", UnitBytes, 1 << 10}, {"MiB", UnitBytes, 1 << 20}, {"GiB", UnitBytes, 1 << 30},
	{"TiB", UnitBytes, 1 << 40},
	{"ns", UnitNs, 1}, {"us", UnitNs, 1e3}, {"ms", UnitNs, 1e6}, {"s", UnitNs, 1e9},
}

var (
	errOperator = errors.New("want a figure, one of > >= < <= == != and a limit, such as min_capacity_bytes>+2%")
	errNumber   = errors.New("want a limit such as +2%, +100MiB or 0")
	errPercent  = errors.New("a limit in % is a change: want a sign, as in +2%")
	errSelector = errors.New("want @strategy or @strategy@trace")
)

// maxCondition bounds the length of a condition.
const maxCondition = 1 << 10

// ParseCondition parses a condition. Spaces around its parts are ignored.
func ParseCondition(s string) (Condition, error) {
	c, err := parseCondition(s)
	if err != nil {
		return Condition{}, fmt.Errorf("condition %q: %w", s, err)
	}
	return c, nil
}

func parseCondition(s string) (c Condition, err error) {
	at := strings.IndexAny(s, "<>=!")
	if at < 0 || len(s) > maxCondition {
		return c, errOperator
	}
	c.Figure = strings.TrimSpace(s[:at])
	i := slices.IndexFunc(operators, func(o operator) bool { return strings.HasPrefix(s[at:], o.name) })
	if i < 0 || c.Figure == "" || strings.ContainsAny(c.Figure, "@ \t") {
		return c, errOperator
	}
	c.Operator = operators[i].name
	limit, selector, selects := strings.Cut(s[at+len(c.Operator):], "@")
	if err := c.parseLimit(strings.TrimSpace(limit)); err != nil {
		return c, err
	}
	if !selects {
		return c, nil
	}
	strategy, trace, hasTrace := strings.Cut(selector, "@")
	c.Strategy, c.Trace = strings.TrimSpace(strategy), strings.TrimSpace(trace)
	if c.Strategy == "" || hasTrace && c.Trace == "" {
		return c, errSelector
	}
	return c, nil
}

func (c *Condition) parseLimit(s string) error {
	if s != "" && strings.ContainsRune("+-", rune(s[0])) {
		c.Sign, s = s[:1], strings.TrimSpace(s[1:])
	}
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		end = len(s)
	}
	c.Number, c.Unit = s[:end], strings.TrimSpace(s[end:])
	whole, part, point := strings.Cut(c.Number, ".")
	if whole == "" || point && part == "" || strings.Contains(part, ".") {
		return errNumber
	}
	switch {
	case c.Unit == percent && c.Sign == "":
		return errPercent
	case c.Unit == percent || c.Unit == "":
		return nil
	}
	names := []string{percent}
	for _, f := range factors {
		names = append(names, f.name)
	}
	if !slices.Contains(names, c.Unit) {
		return fmt.Errorf("unit %q: want one of %s", c.Unit, strings.Join(names, " "))
	}
	return nil
}

// String returns the condition as [ParseCondition] reads it, without spaces.
func (c Condition) String() string {
	s := c.Figure + c.Operator + c.Sign + c.Number + c.Unit
	if c.Strategy != "" {
		s += "@" + c.Strategy
	}
	if c.Trace != "" {
		s += "@" + c.Trace
	}
	return s
}

// MarshalText implements [encoding.TextMarshaler] by String.
func (c Condition) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

func (c *Condition) selects(n Name) bool {
	return (c.Strategy == "" || glob(c.Strategy, n.Strategy)) && (c.Trace == "" || glob(c.Trace, n.Trace))
}

// amount returns the limit in the unit of the figure, or as a fraction if in percent.
func (c *Condition) amount() (*big.Rat, error) {
	n, ok := new(big.Rat).SetString(c.Number)
	if !ok {
		return nil, errNumber
	}
	if c.Sign == "-" {
		n.Neg(n)
	}
	if c.Unit == percent {
		return n.Mul(n, big.NewRat(1, 100)), nil
	}
	for _, f := range factors {
		if f.name == c.Unit {
			if of := UnitOf(c.Figure); of != f.of {
				return nil, fmt.Errorf("unit %q: %s is in %s", c.Unit, c.Figure, of)
			}
			n.Mul(n, new(big.Rat).SetInt64(f.is))
		}
	}
	return n, nil
}

// holds reports whether y, the figure in B, violates the limit, given x in A.
func (c *Condition) holds(x, y, amount *big.Rat) bool {
	limit := amount
	switch {
	case c.Unit == percent:
		limit = new(big.Rat).Add(x, new(big.Rat).Mul(amount, new(big.Rat).Abs(x)))
	case c.Sign != "":
		limit = new(big.Rat).Add(x, amount)
	}
	return c.test(y.Cmp(limit))
}

// Violates reports whether a change of the figure from a to b violates the condition. It fails if
// the unit of the limit does not fit the figure.
func (c *Condition) Violates(a, b uint64) (bool, error) {
	limit, err := c.amount()
	if err != nil {
		return false, err
	}
	return c.holds(new(big.Rat).SetUint64(a), new(big.Rat).SetUint64(b), limit), nil
}

func (c *Condition) test(order int) bool {
	i := slices.IndexFunc(operators, func(o operator) bool { return o.name == c.Operator })
	return i >= 0 && operators[i].holds(order)
}

// glob reports whether a pattern with * and ? matches all of s, in O(len(pattern) · len(s)).
func glob(pattern, s string) bool {
	valid := func(s string) string { return string([]rune(s)) } // invalid UTF-8 becomes U+FFFD
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(valid(pattern)))
	return regexp.MustCompile("^(?s:" + expression + ")$").MatchString(valid(s))
}
