package diff

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Condition is what must not hold of a run of B, such as "min_capacity_bytes>+2%". [ParseCondition]
// makes one.
//
//	condition = figure operator limit [ "@" strategy [ "@" trace ] ]
//	operator  = ">" | ">=" | "<" | "<=" | "==" | "!="
//	limit     = [ "+" | "-" ] number [ unit ]
//	unit      = "%" | "B" | "KiB" | "MiB" | "GiB" | "TiB" | "ns" | "us" | "ms" | "s"
//
// With a sign the limit is the figure of A changed by so much, else it is the number itself. A
// change may be a share of A, in percent. Without a unit bytes and nanoseconds are meant where the
// figure counts them. Strategy and trace say which runs are judged: "*" stands for any characters,
// "?" for one.
type Condition struct {
	Figure   string // name of the figure
	Operator string // one of the six
	Sign     string // of a change from A: "+" or "-"; "" if the limit is the number itself
	Number   string // of the limit, decimal
	Unit     string // of the limit; "" for the figure's own
	Strategy string // pattern of the strategies judged; "" for all
	Trace    string // pattern of the traces judged; "" for all
}

type operator struct {
	name  string
	holds func(order int) bool
}

// operators holds what each operator makes of the order of a figure and its limit. Longer ones come
// first, because they begin like others.
var operators = []operator{
	{">=", func(o int) bool { return o >= 0 }},
	{"<=", func(o int) bool { return o <= 0 }},
	{"==", func(o int) bool { return o == 0 }},
	{"!=", func(o int) bool { return o != 0 }},
	{">", func(o int) bool { return o > 0 }},
	{"<", func(o int) bool { return o < 0 }},
}

// percent is the unit of a share of A.
const percent = "%"

// factors holds how much of the figure's own unit a unit of a limit is.
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
	errSelector = errors.New("want a strategy, and a trace, behind @")
)

// maxCondition bounds the length of a condition, and so of its number.
const maxCondition = 1 << 10

// ParseCondition reads a condition. Spaces around its parts are ignored.
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

// String returns the condition in the form that [ParseCondition] reads, without spaces around its
// parts.
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

// amount returns the number of the limit in the unit of its figure, or, in percent, as a share.
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

// holds reports whether a figure y of B is beyond the limit, where A has x.
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

func (c *Condition) test(order int) bool {
	i := slices.IndexFunc(operators, func(o operator) bool { return o.name == c.Operator })
	return i >= 0 && operators[i].holds(order)
}

// glob reports whether a pattern with * and ? covers the whole of s. It costs at most the product
// of the lengths.
func glob(pattern, s string) bool {
	valid := func(s string) string { return string([]rune(s)) } // bytes that are not UTF-8 become U+FFFD
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(valid(pattern)))
	return regexp.MustCompile("^(?s:" + expression + ")$").MatchString(valid(s))
}
