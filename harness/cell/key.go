package cell

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
)

// Key is the input of a cell: everything that determines its exact figures. Two keys with the same
// [Key.Hash] have the same result.
type Key struct {
	// Engine is the version of the program parts that compute the figures, without the strategy.
	Engine int `json:"engine"`
	// Subject is the SHA-256 of the decompressed trace or op log.
	Subject string `json:"trace_sha256"`
	// Learned is the same of the trace that the strategy planned by; empty: none.
	Learned string `json:"learned_from_sha256"`
	// Strategy is the name without the preset and the settings, which the configuration replaces.
	Strategy  string          `json:"strategy"`
	Config    json.RawMessage `json:"config"`    // with its defaults filled in
	Semantics string          `json:"semantics"` // setting.Setup.Semantics
	Device    any             `json:"device"`    // replay.Target; encodes to JSON
	Search    any             `json:"search"`    // how the figures are computed; encodes to JSON
}

// Of returns a key with the strategy, configuration and version of a setup. It returns false if
// results of the setup must not be stored, because its placements have no version.
func (k Key) Of(s setting.Setup) (Key, bool) {
	config, err := json.Marshal(s.Config)
	if err != nil || s.Semantics == "" {
		return k, false
	}
	k.Strategy = s.Name
	if i := strings.IndexAny(s.Name, ":{"); i >= 0 {
		k.Strategy = s.Name[:i]
	}
	k.Config, k.Semantics = config, s.Semantics
	return k, true
}

// Canonical returns the key as canonical JSON: the keys of objects are sorted, there is no white
// space, and only characters that JSON requires are escaped. Numbers keep their digits.
func (k Key) Canonical() ([]byte, error) {
	text, err := canonical(k)
	if err != nil {
		err = fmt.Errorf("key of a cell: %w", err)
	}
	return text, err
}

// Hash returns the SHA-256 of [Key.Canonical] in hexadecimal.
func (k Key) Hash() (string, error) {
	text, err := k.Canonical()
	if err != nil {
		return "", err
	}
	return hashOf(text), nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// canonical encodes v twice: the second encoding, of maps, sorts the keys.
func canonical(v any) ([]byte, error) {
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
	text, err = encoded(plain)
	return bytes.TrimSuffix(text, []byte("\n")), err
}

// encoded returns v in JSON, as a line in which only characters that JSON requires are escaped.
func encoded(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), err
}
