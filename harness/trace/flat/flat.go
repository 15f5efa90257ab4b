package flat

import (
	"encoding"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Kind is the type of the values of a column.
type Kind int

// The kinds of columns.
const (
	Text  Kind = iota // string; lists and objects of varying fields are text in JSON
	Bool              // bool
	Int               // uint64 or int64
	Float             // float64
)

// Column is a column of a table.
type Column struct {
	Name     string // as in the JSON form; for a field in an object, the object's name, a point and the field's name
	Kind     Kind   // type of the values
	Signed   bool   // integers are int64; otherwise uint64
	Optional bool   // a value may be absent
	JSON     bool   // texts are JSON, or empty for null

	path  []int // field indexes, through structs and pointers to structs
	depth int   // depth of embedding: an outer field hides an inner one of the same name
}

// Table is rows with typed columns.
type Table struct {
	columns []Column
	rows    []reflect.Value
}

// Of returns a table with a row for each struct. The columns are the fields of its JSON form, in
// order. Fields of an object become columns. Lists, and objects tagged `flat:"text"` because their
// fields vary, stay one cell of JSON. Fields tagged `flat:"-"` are omitted.
func Of[R any](rows []R) *Table {
	t := &Table{columns: columnsOf(reflect.TypeFor[R]())}
	for i := range rows {
		t.rows = append(t.rows, reflect.ValueOf(&rows[i]).Elem())
	}
	return t
}

// Columns returns the columns. The table owns the list.
func (t *Table) Columns() []Column { return t.columns }

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

func columnsOf(row reflect.Type) []Column {
	var all []Column
	collect(&all, row, Column{})
	return slices.DeleteFunc(slices.Clone(all), func(c Column) bool {
		return slices.ContainsFunc(all, func(o Column) bool { return o.Name == c.Name && o.depth < c.depth })
	})
}

// collect appends the columns of a struct, or of a pointer to one, at the position of within.
func collect(all *[]Column, t reflect.Type, within Column) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.Tag.Get("flat") == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		c := within
		c.path = append(slices.Clone(within.path), i)
		if f.Anonymous && name == "" {
			c.depth++
			collect(all, f.Type, c)
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner, c.Optional = inner.Elem(), true
		}
		c.Name += name
		if inner.Kind() == reflect.Struct && f.Tag.Get("flat") != "text" && !writesItself(inner) {
			c.Name += "."
			collect(all, inner, c)
			continue
		}
		c.Kind, c.Signed = kindOf(inner)
		c.JSON = c.Kind == Text && inner.Kind() != reflect.String && !inner.Implements(textual)
		*all = append(*all, c)
	}
}

var (
	textual = reflect.TypeFor[encoding.TextMarshaler]()
	inJSON  = reflect.TypeFor[json.Marshaler]()
	decimal = reflect.TypeFor[interface{ Float() float64 }]()
)

// writesItself reports whether a type has its own text or JSON form.
func writesItself(t reflect.Type) bool { return t.Implements(textual) || t.Implements(inJSON) }

func kindOf(t reflect.Type) (k Kind, signed bool) {
	switch {
	case t.Implements(decimal):
		return Float, false
	case t.Implements(textual):
		return Text, false
	}
	switch t.Kind() {
	case reflect.Bool:
		return Bool, false
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Int, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Int, false
	case reflect.Float32, reflect.Float64:
		return Float, false
	}
	return Text, false
}

// Value returns the value of a column in a row: a string, bool, int64, uint64 or float64 by the
// kind of the column, nil if it is absent.
func (t *Table) Value(row, column int) (any, error) {
	c := &t.columns[column]
	v := t.rows[row]
	for _, i := range c.path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil, nil
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, nil
		}
		v = v.Elem()
	}
	return c.value(v)
}

func (c *Column) value(v reflect.Value) (any, error) {
	switch c.Kind {
	case Bool:
		return v.Bool(), nil
	case Int:
		if c.Signed {
			return v.Int(), nil
		}
		return v.Uint(), nil
	case Float:
		if f, ok := v.Interface().(interface{ Float() float64 }); ok {
			return f.Float(), nil
		}
		return v.Float(), nil
	}
	if c.JSON {
		text, err := json.Marshal(v.Interface())
		if string(text) == "null" {
			return "", err
		}
		return string(text), err
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		return string(text), err
	}
	return v.String(), nil
}

// WriteCSV writes the table as comma-separated values, with the names of the columns in the first
// line. An absent value is an empty cell.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	cells := make([]string, len(t.columns))
	for i := range t.columns {
		cells[i] = t.columns[i].Name
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	for row := range t.rows {
		for i := range t.columns {
			v, err := t.Value(row, i)
			if err != nil {
				return fmt.Errorf("row %d, %s: %w", row, t.columns[i].Name, err)
			}
			cells[i] = cellOf(v)
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func cellOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}
