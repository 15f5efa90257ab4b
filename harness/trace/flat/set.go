package flat

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// Set sets the value of a column in a row, in the slice that was passed to [Of]. It takes the
// values that [Table.Value] returns and fails for one that the field cannot hold. Set the absent
// values of a row last: nil fails if an object has this column but only others of its columns.
func (t *Table) Set(row, column int, value any) error {
	c := &t.columns[column]
	v := t.rows[row]
	if value == nil {
		return c.omit(v)
	}
	for _, i := range c.path {
		v = inside(v).Field(i)
	}
	return c.set(inside(v), value)
}

// inside returns the target of a pointer, which it makes if the pointer is nil, or another value
// itself.
func inside(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

var errNull = errors.New("null: want a value")

// omit checks that the value may be absent in a row.
func (c *Column) omit(v reflect.Value) error {
	if !c.Optional {
		return errNull
	}
	for _, i := range c.path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nil
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if v.Kind() != reflect.Pointer {
		return errNull
	}
	return nil
}

func (c *Column) set(v reflect.Value, value any) error {
	switch x := value.(type) {
	case string:
		if c.Kind == Text {
			return c.setText(v, x)
		}
	case bool:
		if c.Kind == Bool {
			v.SetBool(x)
			return nil
		}
	case int64:
		if c.Kind == Int && c.Signed && !v.OverflowInt(x) {
			v.SetInt(x)
			return nil
		}
	case uint64:
		if c.Kind == Int && !c.Signed && !v.OverflowUint(x) {
			v.SetUint(x)
			return nil
		}
	case float64:
		if v.CanFloat() && !v.OverflowFloat(x) {
			v.SetFloat(x)
			return nil
		}
		if into, ok := v.Addr().Interface().(json.Unmarshaler); ok && c.Kind == Float {
			return into.UnmarshalJSON(strconv.AppendFloat(nil, x, 'g', -1, 64))
		}
	}
	return fmt.Errorf("%v: want a value of %v", value, v.Type())
}

func (c *Column) setText(v reflect.Value, text string) error {
	var err error
	raw, isRaw := v.Addr().Interface().(*json.RawMessage)
	switch into, ok := v.Addr().Interface().(encoding.TextUnmarshaler); {
	case c.JSON && text == "":
		v.SetZero()
	case c.JSON && isRaw && json.Valid([]byte(text)): // takes half of the time of Unmarshal
		*raw = json.RawMessage(text)
	case c.JSON:
		err = json.Unmarshal([]byte(text), v.Addr().Interface())
	case ok:
		err = into.UnmarshalText([]byte(text))
	case v.Kind() == reflect.String:
		v.SetString(text)
	default:
		err = fmt.Errorf("want a type with UnmarshalText, not %v", v.Type())
	}
	if err != nil {
		return fmt.Errorf("%.40q: %w", text, err)
	}
	return nil
}
