package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/internal/nearest"
	"github.com/vramyard/vramyard/internal/strictyaml"
)

// Bounds of a grid, so that a typo causes an error instead of days of replays.
const (
	mostGridBytes  = 1 << 18
	mostGridPoints = 4096
	mostGridDepth  = 16 // nesting of lists and mappings; an entry needs four
)

var (
	errGridPoints = fmt.Errorf("more than %d settings", mostGridPoints)
	errGridEmpty  = errors.New("want at least one strategy")
	errGridList   = errors.New("want one list of strategies")
	errEntry      = errors.New("want the name of a strategy, or a mapping with the key strategy, and conf or config")
	errName       = errors.New("want the name of a strategy")
	errMapping    = errors.New("want names with values")
	errScalar     = errors.New("want a string, a number, true or false, or a list of them")
)

// confField is the configuration field set by the key conf of a grid.
const confField = "conf"

// ReadGrid reads a grid: a YAML list of strategies of a catalogue with what to set.
//
//   - bfc                                          # one setting: the preset
//   - strategy: caching
//     conf: ["", "expandable_segments:True"]       # two settings: a text each
//   - strategy: caching
//     conf: {max_split_size_mb: [64, 128], roundup_power2_divisions: ["", 8]}   # four; "" leaves a key out
//   - strategy: async:keep
//     config: {region_bytes: [8MiB, 32MiB]}        # two: fields of the configuration over the preset's
//
// Lists are multiplied out, the last one varies first. The error names line and column.
func ReadGrid(r io.Reader, catalogue setting.Catalogue) ([]setting.Setup, error) {
	return ReadGridUnder(r, catalogue, "")
}

// ReadGridUnder reads a grid like [ReadGrid]. Entries of PyTorch's allocator that state no rules
// get the given ones, unless these are "".
func ReadGridUnder(r io.Reader, catalogue setting.Catalogue, rules string) ([]setting.Setup, error) {
	list, err := gridList(r)
	if err != nil {
		return nil, err
	}
	return entries(list, catalogue, rules)
}

// GridOf returns the settings of a grid that is part of a larger document.
func GridOf(n *yaml.Node, catalogue setting.Catalogue) ([]setting.Setup, error) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		return nil, strictyaml.At(n, errGridList)
	}
	return entries(n.Content, catalogue, "")
}

func entries(list []*yaml.Node, catalogue setting.Catalogue, rules string) ([]setting.Setup, error) {
	var all []setting.Setup
	for _, n := range list {
		setups, err := readEntry(n, catalogue, rules)
		if err != nil {
			return nil, err
		}
		if all = append(all, setups...); len(all) > mostGridPoints {
			return nil, errGridPoints
		}
	}
	return all, nil
}

// FitGrid reads a grid written for another catalogue: it drops the entries that this catalogue
// refuses, and appends the default strategies that are missing.
func FitGrid(r io.Reader, catalogue setting.Catalogue) ([]setting.Setup, error) {
	list, err := gridList(r)
	if err != nil {
		return nil, err
	}
	var all []setting.Setup
	named := map[string]bool{}
	for _, n := range list {
		setups, err := readEntry(n, catalogue, "")
		if err != nil {
			continue
		}
		all = append(all, setups...)
		family, _, _ := strings.Cut(setups[0].Name, ":")
		named[family] = true
	}
	for _, name := range catalogue.Default(setting.Compared) {
		if family, _, _ := strings.Cut(name, ":"); named[family] {
			continue
		}
		setup, err := catalogue.Lookup(name, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, setup)
	}
	return all, nil
}

// gridList reads a grid and returns its entries, at least one.
func gridList(r io.Reader) ([]*yaml.Node, error) {
	list, err := strictyaml.Read(r, strictyaml.Limits{Bytes: mostGridBytes, Depth: mostGridDepth})
	switch {
	case err != nil:
		return nil, err
	case list == nil:
		return nil, errGridEmpty
	case list.Kind != yaml.SequenceNode:
		return nil, strictyaml.At(list, errGridList)
	case len(list.Content) == 0:
		return nil, errGridEmpty
	}
	return list.Content, nil
}

func readEntry(n *yaml.Node, catalogue setting.Catalogue, rules string) ([]setting.Setup, error) {
	if n.Kind == yaml.ScalarNode && n.Value != "" && n.Value != "null" {
		return setups(n, rulesOf(n, nil, rules), catalogue)
	}
	keys, err := strictyaml.Pairs(n, errEntry)
	if err != nil {
		return nil, err
	}
	var name, conf *yaml.Node
	var fields []axis
	for _, p := range keys {
		switch p.Key.Value {
		case "strategy":
			name = p.Value
		case "conf":
			conf = p.Value
		case "config":
			if fields, err = axes(p.Value); err != nil {
				return nil, err
			}
		default:
			return nil, strictyaml.At(p.Key, fmt.Errorf("unknown field %q: %s", p.Key.Value,
				nearest.Want(p.Key.Value, []string{"strategy", "conf", "config"})))
		}
	}
	switch {
	case name == nil:
		return nil, strictyaml.At(n, errEntry)
	case name.Kind != yaml.ScalarNode:
		return nil, strictyaml.At(name, errName)
	case conf != nil:
		a, err := confAxis(conf)
		if err != nil {
			return nil, err
		}
		fields = append(fields, a)
	}
	return setups(name, rulesOf(name, fields, rules), catalogue)
}

// rulesOf returns the fields of an entry with the given rules, if it is of PyTorch's allocator and
// states none.
func rulesOf(name *yaml.Node, fields []axis, rules string) []axis {
	states := func(a axis) bool { return a.name == rulesField }
	if rules != "" && name.Value == cachingName && !slices.ContainsFunc(fields, states) {
		text, _ := json.Marshal(rules) // strings can be encoded
		fields = append(fields, axis{rulesField, []json.RawMessage{text}})
	}
	return fields
}

func setups(name *yaml.Node, fields []axis, catalogue setting.Catalogue) ([]setting.Setup, error) {
	var all []setting.Setup
	err := product(fields, func(chosen []json.RawMessage) error {
		over := map[string]json.RawMessage{}
		for i, f := range fields {
			over[f.name] = chosen[i]
		}
		text, err := json.Marshal(over) // keys are sorted
		if err != nil {
			return err
		}
		s, err := catalogue.Lookup(name.Value, text)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		return nil, strictyaml.At(name, err)
	}
	return all, nil
}

// axis is a name and its JSON values.
type axis struct {
	name   string
	values []json.RawMessage
}

// product calls f for each combination of values; the last axis varies fastest.
func product(axes []axis, f func([]json.RawMessage) error) error {
	n := 1
	for _, a := range axes {
		if n *= len(a.values); n > mostGridPoints {
			return errGridPoints
		}
	}
	chosen := make([]json.RawMessage, len(axes))
	for k := range n {
		for i := len(axes) - 1; i >= 0; i-- {
			v := axes[i].values
			chosen[i] = v[k%len(v)]
			k /= len(v)
		}
		if err := f(chosen); err != nil {
			return err
		}
	}
	return nil
}

func axes(n *yaml.Node) ([]axis, error) {
	keys, err := strictyaml.Pairs(n, errMapping)
	if err != nil {
		return nil, err
	}
	var all []axis
	for _, p := range keys {
		values, err := listed(p.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, axis{p.Key.Value, values})
	}
	return all, nil
}

func listed(n *yaml.Node) ([]json.RawMessage, error) {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	var all []json.RawMessage
	for _, v := range list {
		text, ok := scalar(v)
		if !ok {
			return nil, strictyaml.At(n, errScalar)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return nil, strictyaml.At(n, errScalar)
	}
	return all, nil
}

// scalar converts a YAML scalar to JSON. Infinity and NaN are rejected.
func scalar(n *yaml.Node) (json.RawMessage, bool) {
	var x any
	if n.Kind != yaml.ScalarNode || n.Decode(&x) != nil {
		return nil, false
	}
	switch x.(type) {
	case string, bool, int64, uint64, float64, int:
		text, err := json.Marshal(x)
		return text, err == nil
	}
	return nil, false
}

// confAxis reads the key conf: strings, or a mapping of option names to values.
func confAxis(n *yaml.Node) (axis, error) {
	a := axis{name: confField}
	if n.Kind != yaml.MappingNode {
		values, err := listed(n)
		a.values = values
		return a, err
	}
	keys, err := axes(n)
	if err != nil {
		return a, err
	}
	err = product(keys, func(chosen []json.RawMessage) error {
		var parts []string
		for i, v := range chosen {
			var x any
			if err := json.Unmarshal(v, &x); err != nil {
				return err
			}
			if text, ok := x.(string); !ok {
				parts = append(parts, keys[i].name+":"+string(v))
			} else if text != "" {
				parts = append(parts, keys[i].name+":"+text)
			}
		}
		text, err := json.Marshal(strings.Join(parts, ","))
		a.values = append(a.values, text)
		return err
	})
	if err != nil {
		err = strictyaml.At(n, err)
	}
	return a, err
}
