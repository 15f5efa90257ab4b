package diff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/internal/budget"
)

// Limits of input. Our largest results have a few thousand values in four levels.
const (
	maxBytes  = 1 << 26 // of a decompressed file
	maxDepth  = 32      // nesting of objects and lists
	maxNumber = 64      // bytes of a number; a float64 needs 24
)

// Kind is the kind of a value.
type Kind string

// The kinds of values.
const (
	KindNull   Kind = "null"
	KindBool   Kind = "bool"
	KindNumber Kind = "number"
	KindText   Kind = "text"
	KindList   Kind = "list"
	kindObject Kind = "object" // while reading only: its fields become figures
)

// Value is a value of a result. The zero value is a missing figure.
type Value struct {
	kind   Kind
	text   string   // compact JSON with sorted fields
	number *big.Rat // of a number or a bool (0, 1)
	items  int      // length of a list
	fields []field  // of an object, in file order
}

type field struct {
	name  string
	value Value
}

// Kind returns the kind, "" for a missing value.
func (v Value) Kind() Kind { return v.kind }

// Number returns the number, or a bool as 0 or 1, otherwise nil. It must not be changed.
func (v Value) Number() *big.Rat { return v.number }

// Items returns the length of a list.
func (v Value) Items() int { return v.items }

// String returns the value as JSON, "" if it is missing.
func (v Value) String() string { return v.text }

// MarshalJSON implements [json.Marshaler]; a missing value is null.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.kind == "" {
		return []byte("null"), nil
	}
	return []byte(v.text), nil
}

// Equal reports whether two values are equal. Numbers are compared by value.
func (v Value) Equal(w Value) bool {
	if v.kind == KindNumber && w.kind == KindNumber {
		return v.number.Cmp(w.number) == 0
	}
	return v.kind == w.kind && v.text == w.text
}

// field returns a field of an object, or the zero value.
func (v Value) field(name string) Value {
	i := slices.IndexFunc(v.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return Value{}
	}
	return v.fields[i].value
}

// parser decodes values.
type parser struct {
	d      *json.Decoder
	memory *budget.Budget
	lists  map[string][]Value // items of lists, by path
	path   []string           // path of the current value
}

// valueBytes is the memory of a value while reading, apart from its text.
const valueBytes = 256

// parse reads a single JSON value. It returns the items of the named lists; other lists are kept as
// text only.
func parse(r io.Reader, lists []string, memory *budget.Budget) (Value, map[string][]Value, error) {
	limited := &io.LimitedReader{R: r, N: maxBytes + 1}
	p := &parser{d: json.NewDecoder(limited), memory: memory, lists: map[string][]Value{}}
	for _, l := range lists {
		p.lists[l] = nil
	}
	p.d.UseNumber()
	v, err := p.next(0)
	if err == nil {
		if _, end := p.d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("data after the result")
		}
	}
	switch {
	case limited.N == 0:
		err = fmt.Errorf("more than %d bytes", maxBytes)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("JSON ends early")
	}
	if err != nil {
		return Value{}, nil, fmt.Errorf("byte %d%s: %w", p.d.InputOffset(), p.where(), err)
	}
	return v, p.lists, nil
}

func (p *parser) where() string {
	if len(p.path) == 0 {
		return ""
	}
	return ", " + strconv.Quote(strings.Join(p.path, "."))
}

func (p *parser) next(depth int) (Value, error) {
	t, err := p.d.Token()
	if err == nil {
		err = p.memory.Take(valueBytes)
	}
	if err != nil {
		return Value{}, err
	}
	switch t := t.(type) {
	case json.Delim:
		if depth == maxDepth {
			return Value{}, fmt.Errorf("objects and lists nested more than %d deep", maxDepth)
		}
		if t == '{' {
			return p.object(depth + 1)
		}
		return p.list(depth + 1)
	case json.Number:
		return number(string(t))
	case bool:
		n := new(big.Rat)
		if t {
			n.SetInt64(1)
		}
		return Value{kind: KindBool, text: strconv.FormatBool(t), number: n}, nil
	case string:
		text, err := json.Marshal(t)
		return Value{kind: KindText, text: string(text)}, err
	}
	return Value{kind: KindNull, text: "null"}, nil
}

func (p *parser) object(depth int) (Value, error) {
	v := Value{kind: kindObject}
	seen := map[string]bool{}
	for p.d.More() {
		t, err := p.d.Token()
		if err != nil {
			return v, err
		}
		name, _ := t.(string) // the decoder accepts string keys only
		p.path = append(p.path, name)
		if seen[name] {
			return v, errors.New("given twice")
		}
		seen[name] = true
		f, err := p.next(depth)
		if err != nil {
			return v, err
		}
		p.path = p.path[:len(p.path)-1]
		v.fields = append(v.fields, field{name, f})
	}
	if _, err := p.d.Token(); err != nil {
		return v, err
	}
	v.text = objectText(v.fields)
	return v, p.memory.Take(int64(len(v.text)))
}

// objectText encodes an object with sorted fields.
func objectText(fields []field) string {
	sorted := slices.SortedFunc(slices.Values(fields), func(x, y field) int { return strings.Compare(x.name, y.name) })
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range sorted {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(f.name) // a string can always be encoded
		b.Write(name)
		b.WriteByte(':')
		b.WriteString(f.value.text)
	}
	b.WriteByte('}')
	return b.String()
}

// list reads the rest of a list, and keeps its items if its path was requested.
func (p *parser) list(depth int) (Value, error) {
	v := Value{kind: KindList}
	name := strings.Join(p.path, ".")
	_, keep := p.lists[name]
	var b strings.Builder
	b.WriteByte('[')
	for p.d.More() {
		p.path = append(p.path, strconv.Itoa(v.items))
		item, err := p.next(depth)
		if err != nil {
			return v, err
		}
		p.path = p.path[:len(p.path)-1]
		if keep {
			p.lists[name] = append(p.lists[name], item)
		} else {
			if v.items > 0 {
				b.WriteByte(',')
			}
			b.WriteString(item.text)
		}
		v.items++
	}
	b.WriteByte(']')
	v.text = b.String()
	if _, err := p.d.Token(); err != nil {
		return v, err
	}
	return v, p.memory.Take(int64(len(v.text)))
}

// number parses a number. Numbers outside of float64 are rejected, since their digits could fill
// the memory.
func number(text string) (Value, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) > maxNumber {
		return Value{}, fmt.Errorf("%.*s: number too long or too large", maxNumber, text)
	}
	n := new(big.Rat)
	if math.Abs(x) < math.SmallestNonzeroFloat64*(1<<52) { // below the least normal number; an exponent may be anything
		n.SetFloat64(x)
	} else {
		n.SetString(text) // accepts everything that ParseFloat does
	}
	return Value{kind: KindNumber, text: text, number: n}, nil
}
