package whatif

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/vramyard/vramyard/alloc"
)

// Bounds of a grid, so that a slip of the pen is an error and not a day of replays.
const (
	mostGridBytes  = 1 << 18
	mostGridPoints = 4096
)

var (
	errGridSize   = fmt.Errorf("want at most %d bytes", mostGridBytes)
	errGridPoints = fmt.Errorf("more than %d settings", mostGridPoints)
	errGridEmpty  = errors.New("want at least one strategy")
	errAnchor     = errors.New("anchors and aliases are not read")
	errScalar     = errors.New("want a text, a number, true or false, or a list of them")
)

// confField is the field of a configuration that the key conf of a grid stands for.
const confField = "conf"

// gridEntry is one entry of a grid as it is written.
type gridEntry struct {
	Strategy string   `yaml:"strategy"`
	Conf     ast.Node `yaml:"conf"`
	Config   ast.Node `yaml:"config"`
}

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
func ReadGrid(text []byte, catalogue alloc.Catalogue) ([]alloc.Setup, error) {
	if len(text) > mostGridBytes {
		return nil, errGridSize
	}
	for _, t := range lexer.Tokenize(string(text)) {
		if t.Type == token.AnchorType || t.Type == token.AliasType {
			return nil, at(t.Position, errAnchor)
		}
	}
	var nodes []ast.Node
	if err := yaml.UnmarshalWithOptions(text, &nodes, yaml.Strict()); err != nil {
		return nil, yamlError(err)
	}
	var all []alloc.Setup
	for _, n := range nodes {
		if n == nil {
			return nil, errGridEmpty
		}
		setups, err := readEntry(n, catalogue)
		if err != nil {
			return nil, err
		}
		if all = append(all, setups...); len(all) > mostGridPoints {
			return nil, errGridPoints
		}
	}
	if len(all) == 0 {
		return nil, errGridEmpty
	}
	return all, nil
}

// at says where an error is.
func at(p *token.Position, err error) error {
	return fmt.Errorf("line %d, column %d: %w", p.Line, p.Column, err)
}

// yamlError says in one line what is wrong with a file that is no such YAML.
func yamlError(err error) error {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil {
		return at(e.GetToken().Position, errors.New(e.GetMessage()))
	}
	return err
}

// readEntry multiplies an entry out.
func readEntry(n ast.Node, catalogue alloc.Catalogue) ([]alloc.Setup, error) {
	var e gridEntry
	if err := yaml.NodeToValue(n, &e, yaml.Strict()); err != nil {
		return nil, yamlError(err)
	}
	where := n.GetToken().Position
	fields, err := axes(e.Config)
	if err != nil {
		return nil, err
	}
	if e.Conf != nil {
		conf, err := confAxis(e.Conf)
		if err != nil {
			return nil, err
		}
		fields = append(fields, conf)
	}
	var all []alloc.Setup
	err = product(fields, func(chosen []json.RawMessage) error {
		over := map[string]json.RawMessage{}
		for i, f := range fields {
			over[f.name] = chosen[i]
		}
		text, err := json.Marshal(over) // by name
		if err != nil {
			return err
		}
		s, err := catalogue.Lookup(e.Strategy, text)
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		return nil, at(where, err)
	}
	return all, nil
}

// axis is a name and the values that it takes, in JSON.
type axis struct {
	name   string
	values []json.RawMessage
}

// product calls f with every choice of one value for each axis; the last axis varies first.
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

// axes reads a mapping of names to values or lists of values.
func axes(n ast.Node) ([]axis, error) {
	if n == nil {
		return nil, nil
	}
	var pairs []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		pairs = m.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{m}
	default:
		return nil, at(n.GetToken().Position, errors.New("want names with values"))
	}
	var all []axis
	for _, p := range pairs {
		values, err := listed(p.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, axis{p.Key.GetToken().Value, values})
	}
	return all, nil
}

// listed reads a value or a list of values.
func listed(n ast.Node) ([]json.RawMessage, error) {
	list := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		list = s.Values
	}
	var all []json.RawMessage
	for _, v := range list {
		var x any
		if v == nil || yaml.NodeToValue(v, &x) != nil || !scalar(x) {
			return nil, at(n.GetToken().Position, errScalar)
		}
		text, err := json.Marshal(x)
		if err != nil { // an infinite number
			return nil, at(n.GetToken().Position, errScalar)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return nil, at(n.GetToken().Position, errScalar)
	}
	return all, nil
}

// scalar reports whether a value is a text, a number or a truth.
func scalar(x any) bool {
	switch x.(type) {
	case string, bool, int64, uint64, float64, int:
		return true
	}
	return false
}

// confAxis reads the key conf: texts, or keys of the text with their values.
func confAxis(n ast.Node) (axis, error) {
	a := axis{name: confField}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
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
		err = at(n.GetToken().Position, err)
	}
	return a, err
}
