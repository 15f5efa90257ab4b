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

// OfflineTables writes a verdict and a table for each trace: the lower bound, every greedy placement and the
// lowest placement of all.
func OfflineTables(w io.Writer, r *offline.Report) error {
	if r.FreeAt == replay.AtRequested {
		if _, err := io.WriteString(w, "memory is free when it is requested to be, whatever streams still use it\n\n"); err != nil {
			return err
		}
	}
	for _, s := range r.Traces {
		if err := offlineTable(w, s, r.Limits.Capacity); err != nil {
			return err
		}
	}
	return nil
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

// OfflineTable returns the placements for programs that analyse them, one row for each, the best of each trace last.
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

// placementColumns are the columns of the placements of a trace.
var placementColumns = []ColumnOf[offline.Placement]{
	{
		Column: Column{Name: "placement", Meaning: "how it was found"},
		Cell:   func(p offline.Placement) Cell { return words(p.Method) },
		Top:    func(offline.Placement) Cell { return words("lower bound") },
	},
	{Column: Column{"height", "memory that the placement takes", true}, Cell: placementHeight, Top: placementHeight},
	{Column: Column{"bytes", "the same in bytes", true}, Cell: placementBytes, Top: placementBytes},
	{Column: Column{"× bound", "height in lower bounds", true}, Cell: placementTimes, Top: placementTimes},
	{
		Column: Column{"steps", "work of the search, in buffers and ranges looked at", true},
		Cell:   func(p offline.Placement) Cell { return countCell(p.Steps) },
	},
	{
		Column: Column{"nodes", "partial placements that the search extended", true},
		Cell:   func(p offline.Placement) Cell { return countCell(p.Nodes) },
	},
	{
		Column: Column{Name: "notes", Meaning: "why the search ended"},
		Cell: func(p offline.Placement) Cell {
			if p.Optimal {
				return words("optimal")
			}
			return words(p.Stopped)
		},
		Top: func(offline.Placement) Cell { return words("live bytes alone") },
	},
}

func placementHeight(p offline.Placement) Cell { return bytesCell(p.Height) }
func placementBytes(p offline.Placement) Cell  { return countCell(uint64(p.Height)) }
func placementTimes(p offline.Placement) Cell  { return fixedCell(p.TimesBound, 3) }

// offlineTable writes the table of one trace. Greedy placements above a capacity that was asked for stand behind
// the others.
func offlineTable(w io.Writer, s *offline.Summary, capacity device.Size) error {
	title := fmt.Sprintf("%s: %d buffers, sha256 %.12s", units.Printable(s.Trace), s.Buffers, s.Hash)
	best := s.Best
	best.Method = "best: " + best.Method
	bound := offline.Placement{Height: s.LowerBound, TimesBound: 1}
	fails := func(p offline.Placement) bool { return capacity > 0 && p.Height > capacity }
	rows := append(slices.Clone(s.Greedy), best)
	slices.SortStableFunc(rows[:len(s.Greedy)], func(a, b offline.Placement) int {
		switch {
		case fails(a) == fails(b):
			return 0
		case fails(b):
			return -1
		}
		return 1
	})
	sheet := NewSheet(title, placementColumns, rows)
	for i, p := range rows {
		if note := &sheet.Rows[i][len(placementColumns)-1]; fails(p) {
			note.Tone = Bad
			note.Text = strings.TrimSuffix("FAILED: above "+units.Bytes(capacity)+", "+note.Text, ", ")
		}
	}
	t := sheetBelow(bound, sheet, placementColumns)
	style := StyleOf(w)
	_, err := fmt.Fprintf(w, "%s\n\n%s\n%s\n\n", offlineVerdict(style, s, capacity), t.Title, t.Terminal(w, 1, 1+len(s.Greedy)))
	return err
}
