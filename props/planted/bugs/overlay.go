package bugs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/props/planted"
)

// switchPath is the import path of the switch, and switchFile the file of it that the overlay
// changes.
const (
	switchPath = "github.com/vramyard/vramyard/props/planted"
	switchFile = "props/planted/enabled.go"
)

// Overlay writes the files of the module in folder root that change for the bugs [Of] the named
// strategies into another folder, and overlay.json beside them, for the flag -overlay of the go
// command. The fewer bugs, the fewer packages must be compiled again.
func Overlay(root, folder string, names ...string) error {
	files, err := readAll()
	if err != nil {
		return err
	}
	asked := map[planted.ID]bool{}
	for _, b := range Of(names...) {
		asked[b.ID] = true
	}
	for _, f := range files {
		f.edits = slices.DeleteFunc(f.edits, func(e *edit) bool {
			return !slices.ContainsFunc(e.bugs, func(id planted.ID) bool { return asked[id] })
		})
	}
	edited, err := apply(root, files)
	if err != nil {
		return err
	}
	if root, err = filepath.Abs(root); err != nil {
		return err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return err
	}
	replace := map[string]string{}
	for path, text := range edited {
		to := filepath.Join(folder, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
		replace[filepath.Join(root, path)] = to
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "overlay.json"), append(text, '\n'), 0o644)
}

// apply returns the files of the module that the overlay replaces.
func apply(root string, files []*file) (map[string][]byte, error) {
	sources := map[string]*source{}
	for _, f := range files {
		for _, e := range f.edits {
			s := sources[e.path]
			if s == nil {
				var err error
				if s, err = open(root, e.path); err != nil {
					return nil, fmt.Errorf("props/planted/bugs/%s:%d: %w", f.name, e.line, err)
				}
				sources[e.path] = s
			}
			if err := s.add(e); err != nil {
				return nil, fmt.Errorf("props/planted/bugs/%s:%d: %w", f.name, e.line, err)
			}
		}
	}
	edited := map[string][]byte{}
	for path, s := range sources {
		text, err := s.edited()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		edited[path] = text
	}
	text, err := os.ReadFile(filepath.Join(root, switchFile))
	if err != nil {
		return nil, err
	}
	off, on := []byte("Enabled = false"), []byte("Enabled = true")
	if bytes.Count(text, off) != 1 {
		return nil, fmt.Errorf("%s: want %q once", switchFile, off)
	}
	edited[switchFile] = bytes.Replace(text, off, on, 1)
	return edited, nil
}

// source is a file of the module with the changes to make in it.
type source struct {
	lines     []string
	functions map[string][2]int // from the line of its name to the one after its end
	changes   []change
}

// change replaces the lines from index from to index to, exclusive.
type change struct {
	from, to int
	with     []string
}

// open reads a file of the module.
func open(root, path string) (*source, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{lines: strings.Split(string(text), "\n"), functions: map[string][2]int{}}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			s.functions[nameOf(f)] = [2]int{files.Position(f.Pos()).Line - 1, files.Position(f.End()).Line}
		}
	}
	return s, nil
}

// nameOf returns the name of a function as an edit has it.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of, form := f.Recv.List[0].Type, "%s.%s"
	if p, ok := of.(*ast.StarExpr); ok {
		of, form = p.X, "(*%s).%s"
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	return fmt.Sprintf(form, of, f.Name.Name)
}

// add finds the place of an edit.
func (s *source) add(e *edit) error {
	f, ok := s.functions[e.function]
	if !ok {
		return fmt.Errorf("%s has no function %s", e.path, e.function)
	}
	var before []string
	first, last := -1, 0 // lines of the hunk that change something
	for i, line := range e.hunk {
		if line[0] != '+' {
			before = append(before, line[1:])
		}
		if line[0] != ' ' {
			if first < 0 {
				first = i
			}
			last = i + 1
		}
	}
	at, times := 0, 0
	for i := f[0]; i+len(before) <= f[1]; i++ {
		if slices.Equal(s.lines[i:i+len(before)], before) {
			at = i
			times++
		}
	}
	if times != 1 || len(before) == 0 {
		return fmt.Errorf("the lines of this edit occur %d times in %s of %s, want once", times, e.function, e.path)
	}
	var with []string
	for _, line := range e.hunk[first:last] {
		if line[0] != '-' {
			with = append(with, line[1:])
		}
	}
	s.changes = append(s.changes, change{at + first, at + len(before) - (len(e.hunk) - last), with})
	return nil
}

// edited returns the text with all changes.
func (s *source) edited() ([]byte, error) {
	slices.SortStableFunc(s.changes, func(a, b change) int { return cmp.Compare(a.from, b.from) })
	var lines []string
	done := -1
	for _, c := range s.changes {
		if c.from < done || c.to == done { // the second is an insertion at the end of the edit before
			return nil, fmt.Errorf("two edits change line %d", c.from+1)
		}
		lines = append(lines, s.lines[max(done, 0):c.from]...)
		lines = append(lines, c.with...)
		done = c.to
	}
	lines = append(lines, s.lines[done:]...)
	for i, line := range lines {
		if strings.HasPrefix(line, "package ") {
			lines[i] += "; import " + fmt.Sprintf("%q", switchPath) // on the same line, so that the others keep their numbers
			return []byte(strings.Join(lines, "\n")), nil
		}
	}
	return nil, errors.New("no line begins with package")
}
