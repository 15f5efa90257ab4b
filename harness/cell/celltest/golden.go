// Package celltest holds the figures of cells to their keys.
package celltest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/harness/cell"
)

// Golden compares all cells of some stores with a file of hashes and exact figures. A cell with the
// same key and other figures always fails: the results of two programs would disagree, so a version
// in the key must rise. Other cells than in the file fail too, unless rewrite is set: then the file
// is written.
func Golden(t *testing.T, file string, rewrite bool, stores ...cell.Store) {
	t.Helper()
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was, is := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(before)) {
		hash, figures, _ := strings.Cut(strings.TrimSpace(line), " ")
		was[hash] = figures
	}
	for _, s := range stores {
		if err := collect(t, s, is); err != nil {
			t.Fatal(err)
		}
	}
	var now strings.Builder
	for _, hash := range slices.Sorted(maps.Keys(is)) {
		if old, ok := was[hash]; ok && old != is[hash] {
			t.Errorf("cell %s has other figures under the same key: raise the version in its key\n%s\n%s", hash, old, is[hash])
		}
		fmt.Fprintf(&now, "%s %s\n", hash, is[hash])
	}
	if t.Failed() || now.String() == string(before) {
		return
	}
	if !rewrite {
		t.Fatalf("%s has other cells: review them and run the test with -rewrite", file)
	}
	if err := os.WriteFile(file, []byte(now.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// collect adds the exact figures of all cells of a store.
func collect(t *testing.T, s cell.Store, to map[string]string) error {
	t.Helper()
	names, err := s.Names(t.Context(), "cells/")
	for _, name := range names {
		body, err := s.Get(t.Context(), name)
		if err != nil {
			return err
		}
		var record struct{ Exact json.RawMessage }
		if err := json.Unmarshal(body, &record); err != nil {
			return err
		}
		to[strings.TrimSuffix(path.Base(name), ".json")] = string(record.Exact)
	}
	return err
}
