package torch

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// plain formats a scalar as Python prints it.
func (m *machine) plain(v value) (string, bool) {
	switch v.kind {
	case isNone:
		return "None", true
	case isBool:
		if v.x != 0 {
			return "True", true
		}
		return "False", true
	case isInt:
		return strconv.FormatInt(int64(v.x), 10), true
	case isUint:
		return strconv.FormatUint(v.x, 10), true
	case isFloat:
		return formatFloat(math.Float64frombits(v.x)), true
	case isText:
		return m.texts.ref(v.x).text, true
	}
	return "", false
}

// formatFloat formats a float so that it differs from an integer.
func formatFloat(f float64) string {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	return text
}

// printed formats a scalar as Python prints it, and a container as JSON if it can be.
func (m *machine) printed(v value) (string, bool) {
	if text, ok := m.plain(v); ok {
		return text, true
	}
	b, ok := m.appendJSON(nil, v)
	m.printedRoom -= len(b)
	return string(b), ok
}

func (m *machine) appendJSON(b []byte, v value) ([]byte, bool) {
	if len(b) > m.printedRoom {
		return b, false
	}
	switch v.kind {
	case isNone:
		return append(b, "null"...), true
	case isBool:
		return strconv.AppendBool(b, v.x != 0), true
	case isEmpty:
		return append(b, "[]"...), true
	case isPair:
		p := m.pairs[v.x]
		b = strconv.AppendUint(append(b, '['), p[0], 10)
		return append(strconv.AppendUint(append(b, ", "...), p[1], 10), ']'), true
	case isText:
		text, _ := m.plain(v)
		return appendQuoted(b, text), true
	case isFloat:
		if f := math.Float64frombits(v.x); math.IsNaN(f) || math.IsInf(f, 0) {
			return b, false // not representable in JSON
		}
	case isList, isDict:
		return m.appendContainer(b, m.nodes.ref(v.x))
	}
	text, ok := m.plain(v)
	return append(b, text...), ok
}

func (m *machine) appendContainer(b []byte, nd *node) ([]byte, bool) {
	step, ends := 1, "[]"
	if nd.dict {
		step, ends = 2, "{}"
	}
	b, ok := append(b, ends[0]), true
	for i := 0; i < len(nd.items) && ok; i += step {
		if i > 0 {
			b = append(b, ", "...)
		}
		if nd.dict {
			var key string
			if key, ok = m.plain(nd.items[i]); !ok {
				break
			}
			b = append(appendQuoted(b, key), ": "...)
		}
		b, ok = m.appendJSON(b, nd.items[i+step-1])
	}
	return append(b, ends[1]), ok
}

// appendQuoted appends a JSON string.
func appendQuoted(b []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("snapshot: a string has no JSON: " + err.Error())
	}
	return append(b, quoted...)
}

// setting writes the value of a setting that is not a string, given in the form of printed.
func (b *writer) setting(text string) error {
	switch text {
	case "None":
		b.byte('N')
		return nil
	case "True", "False":
		b.bool(text == "True")
		return nil
	}
	if text == "" || text[0] != '{' && text[0] != '[' {
		return b.settingNumber(text)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for first := true; first || len(b.lists) > 0; first = false {
		token, err := d.Token()
		if err == nil {
			err = b.settingToken(token)
		}
		if err != nil {
			return fmt.Errorf("%s is not JSON: %w", quote(text), err)
		}
	}
	return nil
}

// settingToken writes a JSON token.
func (b *writer) settingToken(token json.Token) error {
	depth := len(b.lists) - 1
	if delim, ok := token.(json.Delim); ok && (delim == ']' || delim == '}') {
		if delim == ']' {
			b.endList()
		} else {
			b.endDict()
		}
		b.lists = b.lists[:depth]
		return nil
	}
	if depth >= 0 && b.lists[depth] {
		b.item()
	}
	switch t := token.(type) {
	case json.Delim:
		if len(b.lists) == maxNesting {
			return fmt.Errorf("containers nested too deep, want at most %d levels", maxNesting)
		}
		b.lists = append(b.lists, t == '[')
		if t == '[' {
			b.list()
		} else {
			b.dict()
		}
	case string:
		b.text(t)
	case bool:
		b.bool(t)
	case json.Number:
		return b.settingNumber(t.String())
	default:
		b.byte('N')
	}
	return nil
}

func (b *writer) settingNumber(text string) error {
	if x, err := strconv.ParseInt(text, 10, 64); err == nil {
		b.int(x)
		return nil
	}
	if x, err := strconv.ParseUint(text, 10, 64); err == nil {
		b.uint(x)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%s is not a number, True, False, None or JSON", quote(text))
	}
	b.float(f)
	return nil
}
