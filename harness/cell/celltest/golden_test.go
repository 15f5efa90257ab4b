package celltest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/cell/celltest"
)

// A test computes cells into a store and holds them to a file.
func ExampleGolden() {
	_ = func(t *testing.T, store cell.Store) {
		celltest.Golden(t, "testdata/cells.txt", false, store)
	}
}

func TestGolden(t *testing.T) {
	d, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	_, err = cell.Recall(context.Background(), cell.Over(d), cell.Key{Strategy: "bfc", Semantics: "1"},
		func() (r cell.Result[int, int], err error) { return cell.Result[int, int]{Exact: 7}, nil })
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "cells.txt")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	celltest.Golden(t, file, true, d)
	celltest.Golden(t, file, false, d)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{64} 7\n$`, string(text))
}
