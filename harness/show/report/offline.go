package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/study/offline"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/units"
)

// OfflineTables writes a verdict and a table for each trace: the lower bound, every greedy
// placement, and the best.
func OfflineTables(w io.Writer, r *offline.Report) error {
	out := &lines{w: w}
	if r.FreeAt == replay.AtRequested {
		out.printf("delayed frees take effect when requested\n\n")
	}
	for _, s := range r.Traces {
		out.offline(s, r.Limits.Capacity)
	}
	return out.err
}

// placementRow is a placement with the figures of its trace.
type placementRow struct {
	Trace   string      `json:"trace"`
	Hash    string      `json:"trace_sha256"`
	Buffers int         `json:"buffers"`
	Bound   device.Size `json:"lower_bound_bytes"`
	Best    bool        `json:"is_best"` // the lowest of all
	offline.Placement
}

// OfflineTable returns the placements as a flat table, the best of each trace last.
func OfflineTable(r *offline.Report) *flat.Table {
	var rows []placementRow
	for _, s := range r.Traces {
		row := placementRow{Trace: s.Trace, Hash: s.Hash, Buffers: s.Buffers, Bound: s.LowerBound}
		for _, row.Placement = range s.Greedy {
			rows = append(rows, row)
		}
		row.Best, row.Placement = true, s.Best
		rows = append(rows, row)
	}
	return flat.Of(rows)
}

var placementColumns = []ColumnOf[offline.Placement]{
	Texts("placement", "how it was found", func(p offline.Placement) string { return p.Method }).
		top(func(offline.Placement) Cell { return textCell("lower bound") }),
	figures("height", "memory that the placement takes", placementHeight).top(placementHeight),
	figures("bytes", "the same in bytes", placementBytes).top(placementBytes),
	figures("× bound", "height / lower bound", placementTimes).top(placementTimes),
	figures("steps", "work of the search: buffers and ranges examined", func(p offline.Placement) Cell {
		return countCell(p.Steps)
	}),
	figures("nodes", "partial placements that the search extended", func(p offline.Placement) Cell {
		return countCell(p.Nodes)
	}),
	Texts("notes", "why the search ended", func(p offline.Placement) string {
		if p.Optimal {
			return "optimal"
		}
		return p.Stopped
	}).top(func(offline.Placement) Cell { return textCell("live bytes alone") }),
}

func placementHeight(p offline.Placement) Cell { return bytesCell(p.Height) }
func placementBytes(p offline.Placement) Cell  { return countCell(uint64(p.Height)) }
func placementTimes(p offline.Placement) Cell  { return fixedCell(p.TimesBound, 3) }

// offline writes the verdict and the table of a trace. Greedy placements above the requested
// capacity come last.
func (l *lines) offline(s *offline.Summary, capacity device.Size) {
	title := fmt.Sprintf("%s: %d buffers, sha256 %.12s", units.Printable(s.Trace), s.Buffers, s.Hash)
	best := s.Best
	best.Method = "best: " + best.Method
	fits := func(p offline.Placement) bool { return capacity == 0 || p.Height <= capacity }
	low, high := slices.DeleteFunc(slices.Clone(s.Greedy), func(p offline.Placement) bool { return !fits(p) }),
		slices.DeleteFunc(slices.Clone(s.Greedy), fits)
	rows := append(slices.Concat(low, high), best)
	t := sheetWithTop(offline.Placement{Height: s.LowerBound, TimesBound: 1}, title, placementColumns, rows)
	for i, p := range rows {
		if note := &t.Rows[1+i][len(placementColumns)-1]; !fits(p) {
			note.Tone = Bad
			note.Text = strings.TrimSuffix("FAILED: above "+units.Bytes(capacity)+", "+note.Text, ", ")
		}
	}
	l.printf("%s\n\n", offlineVerdict(StyleOf(l.w), s, capacity))
	l.sheet(&t, 1, 1+len(s.Greedy))
	l.printf("\n")
}
