package page

import (
	"slices"
	"strings"

	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/top"
)

// topRows is the number of holders in the table of a page.
const topRows = 10

// topTable encodes the report of memory by holder: sentences, the largest holders, and a flame
// graph of each moment. All boxes refer to one list of names.
func (e *encoder) topTable(r *top.Report) object {
	sheets := report.TopSheets(r, topRows)
	f := &flames{numbers: map[string]int{}}
	o := object{
		"summary": strings.Split(report.TopHeadline(r), "\n"), "notes": r.Notes(), "categorized": r.Categorized(),
		"categories": top.Categories, "sheet": e.callerJSON(sheets[len(sheets)-1]), "grouped_by": r.By,
	}
	moments := []object{f.moment("peak", &r.Peak)}
	if r.Failure != nil {
		moments = append(moments, f.moment("last refused request", r.Failure))
	}
	o["moments"], o["names"] = moments, f.names
	return o
}

type flames struct {
	numbers map[string]int
	names   []string
}

func (f *flames) moment(name string, m *top.Moment) object {
	categories := column(m.Categories, func(h *top.Holder) object {
		return object{"category": slices.Index(top.Categories, h.Category), "bytes": h.Bytes, "blocks": h.Blocks}
	})
	return object{"name": name, "event": m.Event, "bytes": m.Bytes, "categories": categories, "flame": f.box(m.Flame())}
}

// box encodes a box: index of its name, bytes, blocks, category, children.
func (f *flames) box(n *top.Node) []any {
	text := clipTo(n.Name, mostLine)
	number, known := f.numbers[text]
	if !known {
		number = len(f.names)
		f.numbers[text] = number
		f.names = append(f.names, text)
	}
	return []any{
		number, n.Bytes, n.Blocks, slices.Index(top.Categories, n.Category),
		column(n.Below, func(b **top.Node) []any { return f.box(*b) }),
	}
}
