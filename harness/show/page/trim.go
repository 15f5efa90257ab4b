package page

import (
	"bytes"
	"encoding/json"
)

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
