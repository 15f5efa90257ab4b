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

// Bounds of what is read. The largest results of ours have a few thousand values and are four deep.
const (
	maxBytes  = 1 << 26 // of a file, decompressed
	maxDepth  = 32      // of objects and lists in each other
	maxNumber = 64      // bytes of a number: a float64 is written in 24
)

// Kind says what a value is.
type Kind string

// The kinds of values.
const (
	KindNull   Kind = "null"
	KindBool   Kind = "bool"
	KindNumber Kind = "number"
	KindText   Kind = "text"
	KindList   Kind = "list"
	kindObject Kind = "object" // only while reading: its fields become figures
)

// Value is one value of a result. The zero value stands for a figure that there is not.
type Value struct {
	kind   Kind
	text   string   // as JSON without spaces, the fields of objects by name
	number *big.Rat // of a number, and 0 or 1 of a bool
	items  int      // of a list
	fields []field  // of an object, in the order of the file
}

// field is one field of an object.
type field struct {
	name  string
	value Value
}

// Kind returns what the value is, "" if there is none.
func (v Value) Kind() Kind { return v.kind }

// Number returns the number, 0 for false and 1 for true, nil for what is neither. It must not be
// changed.
func (v Value) Number() *big.Rat { return v.number }

// Items returns the length of a list.
func (v Value) Items() int { return v.items }

// String returns the value as JSON, "" if there is none.
func (v Value) String() string { return v.text }

// MarshalJSON implements [json.Marshaler]; no value is null.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.kind == "" {
		return []byte("null"), nil
	}
	return []byte(v.text), nil
}

// Equal reports whether two values are the same. Numbers are compared as such, however they are
// written.
func (v Value) Equal(w Value) bool {
	if v.kind == KindNumber && w.kind == KindNumber {
		return v.number.Cmp(w.number) == 0
	}
	return v.kind == w.kind && v.text == w.text
}

// field returns a field of an object, the zero value if it has none of the name.
func (v Value) field(name string) Value {
	i := slices.IndexFunc(v.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return Value{}
	}
	return v.fields[i].value
}

// parser reads values.
type parser struct {
	d      *json.Decoder
	memory *budget.Budget
	lists  map[string][]Value // items of the lists of objects, by path
	path   []string           // fields that lead to the value being read
}

// valueBytes is what a value takes while a result is read, beside its text.
const valueBytes = 256

// parse reads one JSON value and nothing behind it. It returns the items of the lists named, by
// name; other lists keep their text only.
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
			err = errors.New("text after the result")
		}
	}
	switch {
	case limited.N == 0:
		err = fmt.Errorf("more than %d bytes", maxBytes)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("JSON ends in the middle")
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
			return Value{}, fmt.Errorf("more than %d objects and lists in each other", maxDepth)
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
		name, _ := t.(string) // the decoder lets nothing else through
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

// objectText writes an object with its fields by name.
func objectText(fields []field) string {
	sorted := slices.SortedFunc(slices.Values(fields), func(x, y field) int { return strings.Compare(x.name, y.name) })
	var b strings.Builder
	b.WriteByte('{')
	for i, f := range sorted {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(f.name) // a string always can be
		b.Write(name)
		b.WriteByte(':')
		b.WriteString(f.value.text)
	}
	b.WriteByte('}')
	return b.String()
}

// list reads the rest of a list. Its items are kept if somebody wants them.
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

// number reads a number. What no float64 can hold is refused, because nothing of ours writes it and
// its digits could fill the memory.
func number(text string) (Value, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) > maxNumber {
		return Value{}, fmt.Errorf("%.*s: no number of a result is that long or that large", maxNumber, text)
	}
	n := new(big.Rat)
	if math.Abs(x) < math.SmallestNonzeroFloat64*(1<<52) { // the least normal number; an exponent may be anything
		n.SetFloat64(x)
	} else {
		n.SetString(text) // what ParseFloat has read it reads too
	}
	return Value{kind: KindNumber, text: text, number: n}, nil
}
