package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Bounds of a grid, so that a typo causes an error instead of days of replays.
const (
	mostGridBytes  = 1 << 18
	mostGridPoints = 4096
	mostGridDepth  = 16 // nesting of lists and mappings; an entry needs four
)

var (
	errGridSize   = fmt.Errorf("want at most %d bytes", mostGridBytes)
	errGridPoints = fmt.Errorf("more than %d settings", mostGridPoints)
	errGridEmpty  = errors.New("want at least one strategy")
	errGridList   = errors.New("want one list of strategies")
	errAnchor     = errors.New("anchors and aliases are not supported")
	errEntry      = errors.New("want a mapping with the key strategy, and conf or config")
	errName       = errors.New("want the name of a strategy")
	errMapping    = errors.New("want names with values")
	errScalar     = errors.New("want a string, a number, true or false, or a list of them")
)

// confField is the configuration field set by the key conf of a grid.
const confField = "conf"

// ReadGrid reads a grid: a YAML list of strategies of a catalogue with what to set.
//
//   - strategy: caching
//     conf: ["", "expandable_segments:True"]       # two settings: a text each
//   - strategy: caching
//     conf: {max_split_size_mb: [64, 128], roundup_power2_divisions: ["", 8]}   # four; "" leaves a key out
//   - strategy: async:keep
//     config: {region_bytes: [8MiB, 32MiB]}        # two: fields of the configuration over the preset's
//
// Lists are multiplied out, the last one varies first. The error names line and column.
func ReadGrid(r io.Reader, catalogue setting.Catalogue) ([]setting.Setup, error) {
	list, err := gridList(r)
	if err != nil {
		return nil, err
	}
	var all []setting.Setup
	for _, n := range list {
		setups, err := readEntry(n, catalogue)
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
		setups, err := readEntry(n, catalogue)
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
	text, err := io.ReadAll(io.LimitReader(r, mostGridBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostGridBytes {
		return nil, errGridSize
	}
	var documents []yaml.Node
	limits := loaderlimits.New(loaderlimits.DepthValue(mostGridDepth))
	if err := yaml.Load(text, &documents, yaml.WithAllDocuments(), yaml.WithPlugin(limits)); err != nil {
		return nil, yamlError(err)
	}
	if len(documents) == 0 {
		return nil, errGridEmpty
	}
	list := documents[0].Content[0]
	switch {
	case len(documents) > 1:
		return nil, at(documents[1].Content[0], errGridList)
	case list.Kind != yaml.SequenceNode:
		return nil, at(list, errGridList)
	case len(list.Content) == 0:
		return nil, errGridEmpty
	}
	return list.Content, checkAnchors(list)
}

// checkAnchors rejects anchors and aliases in n.
func checkAnchors(n *yaml.Node) error {
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return at(n, errAnchor)
	}
	for _, inner := range n.Content {
		if err := checkAnchors(inner); err != nil {
			return err
		}
	}
	return nil
}

func at(n *yaml.Node, err error) error {
	return fmt.Errorf("line %d, column %d: %w", n.Line, n.Column, err)
}

// yamlError formats a syntax error as one line with its position.
func yamlError(err error) error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	switch {
	case !ok || e.Mark.Line == 0:
		return err
	case e.ContextMark.Line > 0:
		return fmt.Errorf("%v: %s (%s from %v)", e.Mark, e.Message, e.ContextMsg, e.ContextMark)
	}
	return fmt.Errorf("%v: %s", e.Mark, e.Message)
}

type pair struct {
	key, value *yaml.Node
}

// pairs returns the keys and values of a mapping, or wrong if n is not one.
func pairs(n *yaml.Node, wrong error) ([]pair, error) {
	if n.Kind != yaml.MappingNode {
		return nil, at(n, wrong)
	}
	seen := map[string]bool{}
	var all []pair
	for p := range slices.Chunk(n.Content, 2) {
		key := p[0]
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, at(key, wrong)
		case seen[key.Value]:
			return nil, at(key, fmt.Errorf("%q is given twice", key.Value))
		}
		seen[key.Value] = true
		all = append(all, pair{key, p[1]})
	}
	return all, nil
}

func readEntry(n *yaml.Node, catalogue setting.Catalogue) ([]setting.Setup, error) {
	keys, err := pairs(n, errEntry)
	if err != nil {
		return nil, err
	}
	var name, conf *yaml.Node
	var fields []axis
	for _, p := range keys {
		switch p.key.Value {
		case "strategy":
			name = p.value
		case "conf":
			conf = p.value
		case "config":
			if fields, err = axes(p.value); err != nil {
				return nil, err
			}
		default:
			return nil, at(p.key, fmt.Errorf("unknown field %q: %s", p.key.Value,
				nearest.Want(p.key.Value, []string{"strategy", "conf", "config"})))
		}
	}
	switch {
	case name == nil:
		return nil, at(n, errEntry)
	case name.Kind != yaml.ScalarNode:
		return nil, at(name, errName)
	case conf != nil:
		a, err := confAxis(conf)
		if err != nil {
			return nil, err
		}
		fields = append(fields, a)
	}
	return setups(name, fields, catalogue)
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
		return nil, at(name, err)
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
	keys, err := pairs(n, errMapping)
	if err != nil {
		return nil, err
	}
	var all []axis
	for _, p := range keys {
		values, err := listed(p.value)
		if err != nil {
			return nil, err
		}
		all = append(all, axis{p.key.Value, values})
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
			return nil, at(n, errScalar)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return nil, at(n, errScalar)
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
		err = at(n, err)
	}
	return a, err
}
