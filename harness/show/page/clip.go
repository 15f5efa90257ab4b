package page

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostText is the most characters shown of a string from an input file.
const mostText = 200

// clip makes a string from an input file printable: control characters and invalid UTF-8 are
// replaced, and a long string is cut.
func clip(s string) string { return clipTo(s, mostText) }

// clipTo is clip with another limit.
func clipTo(s string, most int) string {
	shown := []rune(s)
	for i, r := range shown {
		if !unicode.IsPrint(r) {
			shown[i] = utf8.RuneError
		}
	}
	if len(shown) > most {
		return string(shown[:most]) + "…"
	}
	return string(shown)
}

// mostSentence is the most characters kept of a line of a string in the caller's JSON. Sentences of
// an answer end with links, which must stay whole.
const mostSentence = 500

// mostItems is the most elements kept of a list in the caller's JSON, and lines of a string.
const mostItems = 200

// trimmed returns v as decoded JSON, with strings clipped and long lists cut.
func trimmed(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return nil, err
	}
	return trim(plain), nil
}

func trim(v any) any {
	switch v := v.(type) {
	case string:
		lines := strings.Split(v, "\n")
		lines = lines[:min(len(lines), mostItems)]
		for i := range lines {
			lines[i] = clipTo(lines[i], mostSentence)
		}
		return strings.Join(lines, "\n")
	case []any:
		v = v[:min(len(v), mostItems)]
		for i := range v {
			v[i] = trim(v[i])
		}
		return v
	case map[string]any:
		for name := range v {
			v[name] = trim(v[name])
		}
	}
	return v
}
