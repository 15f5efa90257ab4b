package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/top"
	"github.com/vramyard/vramyard/internal/units"
)

// TopTables writes the report of memory by holder: a sentence for each moment, a table by category,
// and a table of the largest holders with up to rows rows.
func TopTables(w io.Writer, r *top.Report, rows int) error {
	out := &lines{w: w}
	out.printf("%s\n", TopHeadline(r))
	if r.Peak.Event < 0 {
		return out.err
	}
	out.printf("\n")
	for _, t := range TopSheets(r, rows) {
		out.sheet(&t)
		out.printf("\n")
	}
	for _, n := range r.Notes() {
		out.printf("%s\n", n)
	}
	return out.err
}

// TopHeadline describes the live memory at each moment, one per line.
func TopHeadline(r *top.Report) string {
	when := fmt.Sprintf("at the peak, after event %d", r.Peak.Event)
	if !r.History {
		when = "when the file was written"
	}
	text := fmt.Sprintf("%s live in %s %s", units.Bytes(r.Peak.Bytes), units.Several(r.Peak.Blocks, "block"), when)
	if r.Peak.Event < 0 {
		text = "nothing is allocated"
	}
	text = units.Printable(r.Trace) + ": " + text
	if f := r.Failure; f != nil {
		text += fmt.Sprintf("\nlast refused request: event %d requested %s with %s live in %s", f.Event, units.Bytes(f.Asked),
			units.Bytes(f.Bytes), units.Several(f.Blocks, "block"))
		if f.Refusals > 1 {
			text += fmt.Sprintf(" (%d requests were refused)", f.Refusals)
		}
	}
	return text
}

// holderRow is a holder of memory at the peak and at the failure.
type holderRow struct {
	top.Holder
	failure device.Size
}

// mergeHolders merges the holders of two moments, ordered by their larger size.
func mergeHolders(peak, failure []top.Holder) []holderRow {
	type key struct {
		name     string
		category top.Category
	}
	var rows []holderRow
	at := map[key]int{}
	for _, h := range peak {
		at[key{h.Name, h.Category}] = len(rows)
		rows = append(rows, holderRow{Holder: h})
	}
	for _, h := range failure {
		i, ok := at[key{h.Name, h.Category}]
		if !ok {
			i = len(rows)
			rows = append(rows, holderRow{Holder: top.Holder{Share: top.Share{Name: h.Name}, Category: h.Category}})
		}
		rows[i].failure = h.Bytes
	}
	slices.SortStableFunc(rows, func(a, b holderRow) int {
		return cmp.Compare(max(b.Bytes, b.failure), max(a.Bytes, a.failure))
	})
	return rows
}

// TopSheets returns the tables of a report: by category, if known, and the largest holders.
func TopSheets(r *top.Report, rows int) []Sheet {
	failure := top.Moment{}
	if r.Failure != nil {
		failure = *r.Failure
	}
	columns := []ColumnOf[holderRow]{
		figures("bytes", "requested bytes of the blocks live at the peak", func(h holderRow) Cell {
			return bytesCell(h.Bytes)
		}),
		figures("share", "share of all bytes live at the peak", func(h holderRow) Cell {
			return percentCell(float64(h.Bytes) / float64(max(r.Peak.Bytes, 1)))
		}),
		figures("blocks", "blocks live at the peak", func(h holderRow) Cell { return countCell(uint64(h.Blocks)) }),
	}
	if r.Failure != nil {
		columns = append(columns, figures("at failure", "bytes live when the last request was refused",
			func(h holderRow) Cell { return bytesCell(h.failure) }))
	}
	category := Texts("category", "derived from the stack or the tag, see docs/metrics.md", func(h holderRow) string {
		return string(h.Category)
	})
	var sheets []Sheet
	if r.Categorized() {
		sheets = append(sheets, NewSheet("by category", append(slices.Clip(columns), category),
			mergeHolders(r.Peak.Categories, failure.Categories)))
	}
	all, title := mergeHolders(r.Peak.Holders, failure.Holders), "by "+string(r.By)
	if len(all) > rows {
		title += fmt.Sprintf(", the %d largest of %d", rows, len(all))
		all = all[:rows]
	}
	if r.By == top.ByCallSite && r.Categorized() {
		columns = append(columns, category)
	}
	name := ColumnOf[holderRow]{Column{string(r.By), "common property of the blocks", false}, func(h holderRow) Cell {
		return placeCell(h.Name)
	}, nil}
	return append(sheets, NewSheet(title, append(columns, name), all))
}

// mostPlace bounds the characters of a call site in a table.
const mostPlace = 100

// placeCell formats a call site, shortening its folders; pages and JSON have the full path.
func placeCell(name string) Cell {
	c := textCell(name)
	if characters := strings.Split(c.Text, ""); len(characters) > mostPlace {
		rest := c.Text[strings.LastIndexByte(c.Text, '/')+1:]
		last := strings.Join(characters[len(characters)-mostPlace+1:], "")
		if _, tail, found := strings.Cut(last, "/"); found {
			rest = tail
		}
		if len(rest) < len(c.Text) {
			rest = "…/" + rest
		}
		c.Text = clipped(rest, mostPlace)
	}
	c.Hint = units.Printable(name)
	return c
}
