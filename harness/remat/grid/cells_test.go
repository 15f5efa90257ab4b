package grid_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/cell/celltest"
	"github.com/vramyard/vramyard/harness/remat/grid"
)

// TestEngine holds the exact figures of runs to the keys of their cells. If package remat changed
// them, raise the constant engine; -rewrite then writes the new cells.
func TestEngine(t *testing.T) {
	d, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	_, err = grid.Grid(t.Context(), []grid.Log{logOf(t, "syn_chain64"), logOf(t, "syn_unet4")},
		setupsOf(t, "bestfit", "direct"), grid.Options{
			Settings:   grid.Settings{Liveness: "eager", Limit: 5},
			Heuristics: []string{"lru", "eq"}, Ladders: []string{grid.Evict, grid.DefragFirst},
			Ratios: ratios(t, "0.5,0.7"), Cells: cell.Over(d),
		})
	require.NoError(t, err)
	celltest.Golden(t, filepath.Join("testdata", "cells.txt"), *rewrite, d)
}
