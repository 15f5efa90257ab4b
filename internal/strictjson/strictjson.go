// Package strictjson decodes configurations strictly. Unknown fields and other inputs that
// encoding/json ignores are errors: a mistyped field must not leave a default in place.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/internal/nearest"
)

// Decode reads one JSON object into v, a pointer to a struct; fields that the object lacks keep
// their values. Empty input is an empty object. Errors are unknown fields, fields in other case,
// duplicate fields, null for a field that is not a list, and trailing text. An error about a value
// names its field.
func Decode(raw []byte, v any) error {
	switch text := bytes.TrimSpace(raw); {
	case len(text) == 0:
		return nil
	case text[0] != '{':
		return errors.New("want a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			return errors.New("text after the JSON object")
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("JSON ends in the middle")
	}
	if first := checkFields(raw, reflect.TypeOf(v).Elem()); first != nil {
		return first
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errors.New("want a JSON object")
	}
	return err
}

// checkFields checks the fields of a JSON object against a struct type. It accepts any other value.
func checkFields(raw []byte, t reflect.Type) error {
	kinds := map[string]reflect.Kind{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		kinds[name] = t.Field(i).Type.Kind()
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		switch {
		case kinds[name] == reflect.Invalid:
			return unknownField(name, kinds)
		case seen[name]:
			return fmt.Errorf("%s: given twice", name)
		case string(value) == "null" && kinds[name] != reflect.Slice: // encoding/json writes a nil slice as null
			return fmt.Errorf("%s: null: want a value", name)
		}
		seen[name] = true
		alone := fmt.Appendf(nil, "{%q:%s}", name, value)
		err = json.Unmarshal(alone, reflect.New(t).Interface())
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%s: %s: want %s", name, shown(value, wrong.Value), wordOf(wrong.Type.Kind()))
		}
		if err != nil && !strings.HasPrefix(err.Error(), name) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unknownField returns the error about an unknown field.
func unknownField(name string, kinds map[string]reflect.Kind) error {
	known := slices.Sorted(maps.Keys(kinds))
	hint := strings.TrimSpace(nearest.Hint(name, known))
	switch {
	case len(known) == 0:
		hint = "want no field"
	case hint == "":
		hint = nearest.Want(name, known)
	}
	return fmt.Errorf("json: unknown field %q: %s", name, hint)
}

// longest bounds the bytes of a value in an error.
const longest = 40

// shown returns a value for an error, or its kind if the value is long.
func shown(value json.RawMessage, kind string) string {
	if len(value) > longest {
		return kind
	}
	return string(value)
}

// wordOf returns the name of a kind of values in errors.
func wordOf(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Uint8:
		return "a whole number from 0 to 255"
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number, not negative"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "an object"
}
