package report

import (
	"fmt"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/vramyard/vramyard/harness/offline"
	"github.com/vramyard/vramyard/harness/replay"
)

// OfflineTables writes a table for each trace: the lower bound, every greedy placement and the
// lowest placement of all.
func OfflineTables(w io.Writer, r *offline.Report) error {
	if r.FreeAt == replay.AtRequested {
		if _, err := io.WriteString(w, "memory is free when it is requested to be, whatever streams still use it\n\n"); err != nil {
			return err
		}
	}
	for _, s := range r.Traces {
		if err := offlineTable(w, s); err != nil {
			return err
		}
	}
	return nil
}

// offlineTable writes the table of one trace.
func offlineTable(w io.Writer, s *offline.Summary) error {
	t := NewTable("placement", "height", "bytes", "× bound", "steps", "nodes", "notes")
	rightAlign(t, 2, 3, 4, 5, 6)
	t.AppendRow(table.Row{"lower bound", Bytes(s.LowerBound), uint64(s.LowerBound), "1.000", none, none, "live bytes alone"})
	t.AppendSeparator()
	for _, p := range s.Greedy {
		t.AppendRow(placementRow(p, p.Method))
	}
	t.AppendSeparator()
	t.AppendRow(placementRow(s.Best, "best: "+s.Best.Method))
	_, err := fmt.Fprintf(w, "%s: %d buffers, sha256 %.12s\n%s\n\n", Printable(s.Trace), s.Buffers, s.Hash, t.Render())
	return err
}

// placementRow returns the cells of a placement.
func placementRow(p offline.Placement, name string) table.Row {
	notes := p.Stopped
	if p.Optimal {
		notes = "optimal"
	}
	return table.Row{
		name, Bytes(p.Height), uint64(p.Height), strconv.FormatFloat(p.TimesBound, 'f', 3, 64),
		p.Steps, p.Nodes, notes,
	}
}
