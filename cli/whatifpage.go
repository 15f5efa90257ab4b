package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/internal/units"
)

// paletteSize is how many hues there are; a higher number is the same hue with a mark.
const paletteSize = 8

// page returns the page of a search: the answer in words, all points tried, and pictures of the
// important ones, each on the device of its figures.
func (f *whatifFlags) page(cmd *cobra.Command, w *whatif.SurveyedTrace, r *whatif.Result) (*page.Report, error) {
	var text strings.Builder
	if err := report.WhatIf(&text, r); err != nil {
		return nil, err
	}
	p := &page.Report{
		Kind: "whatif", Title: "What would have saved the run", Texts: []page.Text{{Title: "Answer", Body: text.String()}},
		More: map[string]any{"whatif": r},
	}
	if len(r.Runs) > 0 {
		p.Sheets = []report.Sheet{report.WhatIfSheet(r)}
	}
	points := drawnPoints(r)
	if len(points) == 0 {
		return p, nil
	}
	o := page.Budget(len(points))
	o.FreeAt = r.FreeAt
	runs := make([]drawing, len(points))
	color := colors(f.catalogue)
	seen := map[int]int{} // how often a hue was taken
	for i, point := range points {
		d := &runs[i]
		d.setup, d.device, d.figures = point.Setup(point.Device), r.Device.Config, point
		d.setup.Name = point.Label // settings of one strategy have one name
		d.device.Capacity = point.Device
		d.color = color(point.Strategy)
		hue := d.color % paletteSize
		d.color += paletteSize * seen[hue]
		seen[hue]++
		if !point.Starts {
			d.missing = "does not start on " + units.Bytes(point.Device)
		}
	}
	prepared, err := replay.Prepare(cmd.Context(), w)
	if err != nil {
		return nil, err
	}
	drawn, err := draw(cmd, prepared, f.stacks, runs, o)
	p.Traces = []page.Traced{drawn}
	return p, err
}

// drawnPoints returns the recorded settings, the answer and the best other allocator, without
// duplicates.
func drawnPoints(r *whatif.Result) (points []*whatif.Point) {
	var recorded, answer, other *whatif.Point
	for i := range r.Runs {
		p := &r.Runs[i]
		switch {
		case p.Recorded:
			recorded = p
		case p.Label == r.Answer.Label && r.Answer.Label != "":
			answer = p
		case other == nil && p.Export == nil && !p.Baseline && p.Permitted() && p.Need() != 0:
			other = p
		}
	}
	for _, p := range []*whatif.Point{recorded, answer, other} {
		if p != nil {
			points = append(points, p)
		}
	}
	return points
}
