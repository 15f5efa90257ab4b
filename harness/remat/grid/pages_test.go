package grid_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/remat/grid"
)

// lineKey names the rows of a line of the page.
type lineKey struct{ model, heuristic, strategy, ladder, defrag string }

// pageLine is what the rows of a line come to.
type pageLine struct {
	rows              []pageRow // by ratio
	smallest, largest *pageRow  // the smallest budget that suffices, the largest that does not
}

// pages makes the tables of the page.
type pages struct {
	logs  []grid.Log
	bases []grid.Base
	keys  []lineKey
	lines map[lineKey]*pageLine
}

// newPages folds rows, which are sorted, into lines.
func newPages(t *testing.T, logs []grid.Log, rows []pageRow) *pages {
	t.Helper()
	p := &pages{logs: logs, lines: map[lineKey]*pageLine{}}
	r, err := grid.Grid(t.Context(), logs, nil, grid.Options{
		Heuristics: []string{"size"}, Settings: grid.Settings{Liveness: "eager", Limit: 2}, Ratios: []grid.Ratio{grid.Whole},
	})
	require.NoError(t, err)
	p.bases = r.Logs
	for i := range rows {
		r := &rows[i]
		k := lineKey{r.model, r.heuristic, r.strategy, r.ladder, r.defrag}
		l := p.lines[k]
		if l == nil {
			l = &pageLine{}
			p.lines[k], p.keys = l, append(p.keys, k)
		}
		l.rows = append(l.rows, *r)
		switch {
		case r.verdict != remat.OK:
			l.largest = r
		case l.smallest == nil:
			l.smallest = r
		}
	}
	return p
}

// line returns a line whose blocks slide. Counting has one ladder.
func (p *pages) line(model, heuristic, strategy, ladder string) *pageLine {
	if strategy == grid.Counting {
		ladder = grid.Evict
	}
	l := p.lines[lineKey{model, heuristic, strategy, ladder, "slide"}]
	if l == nil {
		l = &pageLine{}
	}
	return l
}

// cell returns the smallest budget that suffices; with a star if a larger one does not.
func (l *pageLine) cell() string {
	switch {
	case len(l.rows) == 0:
		return ""
	case l.smallest == nil:
		return "—"
	case l.largest != nil && l.largest.ratio > l.smallest.ratio:
		return l.smallest.ratio.String() + "*"
	}
	return l.smallest.ratio.String()
}

// need returns the smallest budget that suffices, and 1.1 for none up to 1.0.
func (l *pageLine) need() float64 {
	if l.smallest == nil {
		return 1.1
	}
	return l.smallest.ratio.Float()
}

// sheet writes a table.
func sheet(head []string, rows [][]string) string {
	var b strings.Builder
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|---|" + strings.Repeat("--:|", len(head)-1) + "\n")
	for _, r := range rows {
		b.WriteString("| " + strings.Join(r, " | ") + " |\n")
	}
	return b.String()
}

// names returns the names of all logs behind others.
func (p *pages) names(first ...string) []string {
	for i := range p.logs {
		first = append(first, strings.ReplaceAll(p.logs[i].Model, "_", " "))
	}
	return first
}

// logTable says what the logs are.
func (p *pages) logTable() string {
	rows := [][]string{}
	for _, b := range p.bases {
		rows = append(rows, []string{
			strings.ReplaceAll(b.Model, "_", " "), fmt.Sprint(b.Ops), fmt.Sprintf("%.1f", float64(b.Time)/1e6),
			fmt.Sprintf("%.1f", float64(b.Peak)/float64(device.MiB)), share(b.Constant, b.Peak), share(b.Bottleneck, b.Peak),
			share(b.LowerBound, b.Peak),
		})
	}
	return sheet([]string{"log", "operators", "step in ms", "base peak in MiB", "constants", "widest operator",
		"lower bound"}, rows)
}

// share returns a part of the base peak.
func share(n, of device.Size) string { return fmt.Sprintf("%.2f", float64(n)/float64(of)) }

// strategyTable says what each strategy needs on each log with a ladder.
func (p *pages) strategyTable(ladder string) string {
	rows := [][]string{}
	for _, s := range append([]string{grid.Counting}, pageStrategies...) {
		row, sum := []string{"`" + s + "`"}, 0.0
		for i := range p.logs {
			l := p.line(p.logs[i].Model, pageBase, s, ladder)
			row = append(row, l.cell())
			sum += l.need() - p.line(p.logs[i].Model, pageBase, grid.Counting, "").need()
		}
		rows = append(rows, append(row, fmt.Sprintf("%.2f", sum/float64(len(p.logs)))))
	}
	return sheet(append(p.names("strategy"), "mean price"), rows)
}

// halfTable says what each strategy costs in time within the budget in the middle between what
// counting needs and the peak.
func (p *pages) halfTable() string {
	rows := [][]string{}
	for _, s := range append([]string{grid.Counting}, pageStrategies...) {
		row := []string{"`" + s + "`"}
		for i := range p.logs {
			cell := "—"
			for _, r := range p.line(p.logs[i].Model, pageBase, s, grid.Evict).rows {
				if r.ratio == grid.Half && r.verdict == remat.OK {
					cell = fmt.Sprintf("%.2f", float64(r.clock)/float64(p.bases[i].Time))
				}
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return sheet(p.names("strategy"), rows)
}

// heuristicTable says what each heuristic needs in each memory, as the mean over all logs.
func (p *pages) heuristicTable() string {
	memories, head := append([]string{grid.Counting}, pageStrategies...), []string{"heuristic"}
	for _, s := range memories {
		head = append(head, "`"+s+"`")
	}
	rows := [][]string{}
	for _, h := range pageHeuristics {
		row := []string{"`" + h + "`"}
		for _, s := range memories {
			sum, none := 0.0, 0
			for i := range p.logs {
				l := p.line(p.logs[i].Model, h, s, grid.Evict)
				if sum += l.need(); l.smallest == nil {
					none++
				}
			}
			cell := fmt.Sprintf("%.2f", sum/float64(len(p.logs)))
			if none > 0 {
				cell += fmt.Sprintf(" (%d)", none)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return sheet(head, rows)
}

// spreadTable says how much the choice of the heuristic and that of the strategy change what is
// needed.
func (p *pages) spreadTable() string {
	span := func(lines []*pageLine) string {
		least, most := math.Inf(1), 0.0
		for _, l := range lines {
			least, most = min(least, l.need()), max(most, l.need())
		}
		return fmt.Sprintf("%s to %s", needed(least), needed(most))
	}
	rows := [][]string{}
	for i := range p.logs {
		model := p.logs[i].Model
		var byHeuristic, byStrategy, inRegion []*pageLine
		for _, h := range pageHeuristics {
			byHeuristic = append(byHeuristic, p.line(model, h, grid.Counting, ""))
			inRegion = append(inRegion, p.line(model, h, pageOneRegion, grid.Evict))
		}
		for _, s := range pageStrategies {
			byStrategy = append(byStrategy, p.line(model, pageBase, s, grid.Evict))
		}
		rows = append(rows, []string{
			strings.ReplaceAll(model, "_", " "), p.line(model, pageBase, grid.Counting, "").cell(), span(byHeuristic),
			span(byStrategy), span(inRegion),
		})
	}
	return sheet([]string{
		"log", "counting by `" + pageBase + "`", "counting by any heuristic", "any strategy by `" + pageBase + "`",
		"`" + pageOneRegion + "` by any heuristic",
	}, rows)
}

// needed returns a budget in words.
func needed(x float64) string {
	if x > 1 {
		return "none"
	}
	return fmt.Sprintf("%.1f", x)
}

// moveTable returns the table of the gain from moving blocks within one region.
func (p *pages) moveTable() string {
	rows := [][]string{}
	for i, b := range p.bases {
		row := []string{strings.ReplaceAll(b.Model, "_", " ")}
		for _, ladder := range []string{grid.Evict, "evict-first", grid.DefragFirst} {
			row = append(row, p.line(b.Model, pageBase, pageOneRegion, ladder).cell())
		}
		row = append(row, p.line(b.Model, pageBase, grid.Counting, "").cell())
		volume, took := "—", "—"
		if r := p.line(b.Model, pageBase, pageOneRegion, grid.DefragFirst).smallest; r != nil {
			volume = fmt.Sprintf("%.1f", float64(r.moved)/float64(b.Peak))
			took = fmt.Sprintf("%.3f", float64(r.moving)/float64(p.bases[i].Time))
		}
		rows = append(rows, append(row, volume, took))
	}
	return sheet([]string{"log", "never", "last", "first", "counting", "moved, in base peaks", "moving, in steps"}, rows)
}

// kindTable says what the ways to move cost where blocks are moved first.
func (p *pages) kindTable() string {
	rows := [][]string{}
	for i, b := range p.bases {
		row := []string{strings.ReplaceAll(b.Model, "_", " ")}
		for _, kind := range remat.DefragKinds() {
			cell := "—"
			if l := p.lines[lineKey{b.Model, pageBase, pageOneRegion, grid.DefragFirst, kind}]; l != nil && l.smallest != nil {
				r := l.smallest
				cell = fmt.Sprintf("%s: %.2f + %.2f", r.ratio, float64(r.clock)/float64(p.bases[i].Time),
					float64(r.moving)/float64(p.bases[i].Time))
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return sheet(append([]string{"log"}, remat.DefragKinds()...), rows)
}

// monotoneLine says how many lines complete within a budget and fail within a larger one.
func (p *pages) monotoneLine() string {
	odd, all, counting := 0, 0, 0
	strategies := map[string]bool{}
	for _, k := range p.keys {
		l := p.lines[k]
		if l.smallest == nil {
			continue
		}
		all++
		if l.largest == nil || l.largest.ratio < l.smallest.ratio {
			continue
		}
		odd++
		strategies[k.strategy] = true
		if k.strategy == grid.Counting {
			counting++
		}
	}
	names := []string{}
	for s := range strategies {
		names = append(names, "`"+s+"`")
	}
	slices.Sort(names)
	return fmt.Sprintf("Of %d lines that complete within any budget, %d fail within a larger one, %d of them with "+
		"`counting`. Memories in which that happens: %s.\n",
		all, odd, counting, strings.Join(names, ", "))
}
