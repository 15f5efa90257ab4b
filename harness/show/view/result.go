package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat/grid"
	"github.com/vramyard/vramyard/harness/show/chart"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/units"
)

// Result returns the page of a result in JSON: its figures as tables, and the plots it supports.
// name is the file name, number returns the palette index of a strategy. The page lists what the
// result lacks, with the command that produces it. Results that do not list runs, such as of
// offline, are shown field by field. Memory bounds what the result may occupy.
func Result(name string, text []byte, number func(strategy string) int, memory *budget.Budget) (*page.Report, error) {
	var head struct{ Schema string }
	if json.Unmarshal(text, &head) == nil && !slices.Contains(diff.Schemas(), head.Schema) {
		return plain(name, text)
	}
	res, err := diff.Read(bytes.NewReader(text), memory)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if head.Schema == grid.Schema {
		r, err := grid.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return Grid(r, number)
	}
	r := &page.Report{Kind: "view", Title: name, Facts: []page.Fact{{Name: "schema", Value: res.Schema}}}
	for _, s := range res.Settings {
		r.Facts = append(r.Facts, page.Fact{Name: s.Name, Value: s.Value.String()})
	}
	var traces []string
	of := map[string][]diff.Run{}
	for _, run := range res.Runs {
		if of[run.Trace] == nil {
			traces = append(traces, run.Trace)
		}
		of[run.Trace] = append(of[run.Trace], run)
	}
	for _, t := range traces {
		r.Sheets = append(r.Sheets, figuresSheet(t, of[t]))
	}
	lacks := []string{
		"A result does not contain the memory map, heap states and curves. To see them, run on the traces:",
		"  vramyard view --strategies " + strings.Join(strategiesOf(res.Runs), ",") + " TRACE",
	}
	for _, k := range chart.Kinds() {
		share := memory.Share() // each kind reads the result again
		svg, err := plot(name, text, k.Name, number, share)
		share.Close()
		if err != nil {
			lacks = append(lacks, "No plot of "+k.Name+" ("+k.Doc+"): "+err.Error())
			continue
		}
		r.Plots = append(r.Plots, page.Plot{Title: k.Doc, SVG: svg})
	}
	r.Texts = append(r.Texts, page.Text{Title: "Not in this file", Body: strings.Join(lacks, "\n")})
	return r, nil
}

func plot(name string, text []byte, kind string, number func(string) int, memory *budget.Budget) ([]byte, error) {
	s, err := chart.Read(name, bytes.NewReader(text), memory)
	if err != nil {
		return nil, err
	}
	c, err := chart.Draw([]*chart.Source{s}, chart.Options{Kind: kind, Number: number})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = c.Write(&b, chart.SVG, chart.Page{Width: chart.TwoColumns, Font: 9, Linked: true})
	return b.Bytes(), err
}

func strategiesOf(runs []diff.Run) (names []string) {
	for _, r := range runs {
		if !slices.Contains(names, r.Strategy) {
			names = append(names, r.Strategy)
		}
	}
	return names
}

func figuresSheet(trace string, runs []diff.Run) report.Sheet {
	s := report.Sheet{Title: units.Printable(trace), Columns: []report.Column{{Name: "figure"}}}
	var names []string
	seen := map[string]bool{}
	for _, r := range runs {
		s.Columns = append(s.Columns, report.Column{Name: units.Printable(r.Strategy), Number: true})
		for _, f := range r.Figures {
			if !seen[f.Name] {
				seen[f.Name] = true
				names = append(names, f.Name)
			}
		}
	}
	for _, name := range names {
		row := []report.Cell{{Text: units.Printable(name)}}
		for i := range runs {
			row = append(row, cellOf(name, runs[i].Figure(name)))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// cellOf formats a figure: sizes with a unit, other fractions with four digits.
func cellOf(name string, v diff.Value) report.Cell {
	c := report.Cell{Text: v.String(), Number: true}
	n := v.Number()
	switch {
	case v.Kind() == diff.KindNull || v.Kind() == "":
		c.Text = "—"
	case v.Kind() != diff.KindNumber:
	case !n.IsInt():
		x, _ := n.Float64()
		c.Text, c.Value = strconv.FormatFloat(x, 'g', 4, 64), v.String()
	case diff.UnitOf(name) == diff.UnitBytes && n.Num().IsUint64():
		c.Text, c.Value = units.Bytes(device.Size(n.Num().Uint64())), v.String()
	default:
		c.Value = v.String()
	}
	return c
}
