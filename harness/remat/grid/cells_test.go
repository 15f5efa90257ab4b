package grid_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/cell"
	"github.com/vramyard/vramyard/harness/cell/celltest"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
)

// TestEngine holds the exact figures of runs to the keys of their cells: with every heuristic and
// plan, every step after a refused request, and every kind of each setting. If package remat
// changed them, raise the constant engine; -rewrite then writes the new cells.
func TestEngine(t *testing.T) {
	d, err := cell.OpenDir(t.TempDir())
	require.NoError(t, err)
	chain, net := logOf(t, "syn_chain64"), logOf(t, "syn_unet4")
	run := func(at string, strategy string, change func(o *grid.Options), logs ...grid.Log) {
		o := grid.Usual()
		o.Heuristics, o.Ladders, o.Ratios = []string{"eq"}, []string{grid.Evict}, ratios(t, at)
		o.Limit, o.Cells = 5, cell.Over(d)
		change(&o)
		_, err := grid.Grid(t.Context(), logs, setupsOf(t, strategy), o)
		require.NoError(t, err)
	}
	run("0.5,0.7", "direct", func(*grid.Options) {}, chain, net)
	run("0.6", "bestfit", func(o *grid.Options) {
		o.Heuristics = []string{"eq:evict=swap", "eq:evict=cheaper", "mge:size=2"}
		for _, h := range remat.Heuristics() {
			o.Heuristics = append(o.Heuristics, h.Name)
		}
	}, net)
	run("0.5,0.6", "bfc:spatial", func(o *grid.Options) { o.Heuristics = []string{"coop", "coop-ends"} },
		logOf(t, "syn_transformer6")) // windows of many sizes, and both ends
	run("0.6", "bestfit", func(o *grid.Options) {
		o.Heuristics = nil
		for _, p := range remat.Plans() {
			o.Heuristics = append(o.Heuristics, p.Name)
		}
	}, chain)
	run("0.5", "bestfit", func(o *grid.Options) {
		o.Ladders = nil
		for _, l := range remat.Ladders() {
			o.Ladders = append(o.Ladders, l.Name)
		}
	}, net)
	each := func(names []string, set func(s *grid.Settings, name string)) {
		for _, name := range names {
			run("0.5", "bestfit", func(o *grid.Options) {
				set(&o.Settings, name)
				o.Ladders = []string{grid.DefragFirst}
			}, net)
		}
	}
	each(remat.Livenesses(), func(s *grid.Settings, name string) { s.Liveness = name })
	each(remat.Triggers(), func(s *grid.Settings, name string) { s.Trigger = name })
	each(remat.DefragKinds(), func(s *grid.Settings, name string) { s.Defrag = name })
	each(grid.ParentOrders(), func(s *grid.Settings, name string) { s.ParentOrder = name })
	each([]string{"stride", "mge", "8"}, func(s *grid.Settings, name string) { s.Sampling = name })
	each([]string{"1MiB,cut", "1%"}, func(s *grid.Settings, name string) { s.MinEvictee = name })
	each([]string{remat.AllQuirks.String()}, func(s *grid.Settings, name string) { s.Quirks = name })
	celltest.Golden(t, filepath.Join("testdata", "cells.txt"), *rewrite, d)
}
