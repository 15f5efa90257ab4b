package page

import (
	"bytes"
	"encoding/json"
	"unicode"
	"unicode/utf8"
)

// mostText is the most characters that are shown of a text out of a file.
const mostText = 200

// clip returns a text out of a file as it is shown: characters that control something are replaced,
// what is no UTF-8 too, and what is too long is cut.
func clip(s string) string { return clipTo(s, mostText) }

// clipTo is clip for texts of at most so many characters.
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

// mostItems is the most elements of a list in what others have put into JSON.
const mostItems = 200

// trimmed returns v as JSON has it, with texts clipped and long lists cut.
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

// trim trims what was decoded from JSON.
func trim(v any) any {
	switch v := v.(type) {
	case string:
		return clip(v)
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
