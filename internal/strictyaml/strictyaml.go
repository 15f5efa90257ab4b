// Package strictyaml reads YAML files that people write by hand, strictly. Inputs that a YAML
// library accepts silently are errors: a second document, a key given twice, anchors and aliases.
// Every error names the line and the column.
package strictyaml

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Limits bound a file, so that a hostile one takes little memory.
type Limits struct {
	Bytes int // of the file
	Depth int // nesting of lists and mappings
}

var (
	errAnchor   = errors.New("anchors and aliases are not supported")
	errDocument = errors.New("want one document")
)

// Read reads a file of one document and returns its root, nil if the file is empty.
func Read(r io.Reader, most Limits) (*yaml.Node, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(most.Bytes)+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most.Bytes {
		return nil, fmt.Errorf("want at most %d bytes", most.Bytes)
	}
	var documents []yaml.Node
	limits := loaderlimits.New(loaderlimits.DepthValue(most.Depth))
	if err := yaml.Load(text, &documents, yaml.WithAllDocuments(), yaml.WithPlugin(limits)); err != nil {
		return nil, located(err)
	}
	switch {
	case len(documents) == 0:
		return nil, nil
	case len(documents) > 1:
		return nil, At(documents[1].Content[0], errDocument)
	}
	root := documents[0].Content[0]
	return root, checkAnchors(root)
}

// checkAnchors rejects anchors and aliases in n.
func checkAnchors(n *yaml.Node) error {
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return At(n, errAnchor)
	}
	for _, inner := range n.Content {
		if err := checkAnchors(inner); err != nil {
			return err
		}
	}
	return nil
}

// At prefixes an error with the place of a node.
func At(n *yaml.Node, err error) error {
	return fmt.Errorf("line %d, column %d: %w", n.Line, n.Column, err)
}

// located formats a syntax error as one line with its position.
func located(err error) error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	switch {
	case !ok || e.Mark.Line == 0:
		return err
	case e.ContextMark.Line > 0:
		return fmt.Errorf("%v: %s (%s from %v)", e.Mark, e.Message, e.ContextMsg, e.ContextMark)
	}
	return fmt.Errorf("%v: %s", e.Mark, e.Message)
}

// Pair is an entry of a mapping.
type Pair struct {
	Key, Value *yaml.Node // the key is a scalar
}

// Pairs returns the entries of a mapping in file order, or wrong if n is not one.
func Pairs(n *yaml.Node, wrong error) ([]Pair, error) {
	if n.Kind != yaml.MappingNode {
		return nil, At(n, wrong)
	}
	seen := map[string]bool{}
	var all []Pair
	for p := range slices.Chunk(n.Content, 2) {
		key := p[0]
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, At(key, wrong)
		case seen[key.Value]:
			return nil, At(key, fmt.Errorf("%q is given twice", key.Value))
		}
		seen[key.Value] = true
		all = append(all, Pair{key, p[1]})
	}
	return all, nil
}
