package snapshot

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// plain returns a number, a truth value, a string or None as Python prints it.
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
		return strings.ToValidUTF8(m.texts[v.x].text, "\ufffd"), true
	}
	return "", false
}

// formatFloat prints a float so that it does not look like an integer.
func formatFloat(f float64) string {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	return text
}

// printed returns a value as Python prints it; containers are in JSON, as far as JSON has words for
// what they hold.
func (m *machine) printed(v value) (string, bool) {
	if text, ok := m.plain(v); ok {
		return text, true
	}
	b, ok := m.appendJSON(nil, v)
	return string(b), ok
}

// appendJSON appends a value. Containers are at most maxNesting deep.
func (m *machine) appendJSON(b []byte, v value) ([]byte, bool) {
	if len(b) > maxSetting {
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
		p := v.pair()
		b = strconv.AppendUint(append(b, '['), p[0], 10)
		return append(strconv.AppendUint(append(b, ", "...), p[1], 10), ']'), true
	case isText:
		text, _ := m.plain(v)
		return appendQuoted(b, text), true
	case isFloat:
		if f := math.Float64frombits(v.x); math.IsNaN(f) || math.IsInf(f, 0) {
			return b, false // JSON has no word for it
		}
	case isList, isDict:
		return m.appendContainer(b, &m.nodes[v.x])
	}
	text, ok := m.plain(v)
	return append(b, text...), ok
}

// appendContainer appends a list or a dictionary.
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

// appendQuoted appends a string of JSON.
func appendQuoted(b []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("snapshot: a string has no JSON: " + err.Error())
	}
	return append(b, quoted...)
}
