package report

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// NewTable returns an empty table in the style of all reports.
func NewTable(headings ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(headings)
	return t
}

// rightAlign aligns columns, counted from one, at their right edge.
func rightAlign(t table.Writer, columns ...int) {
	var right []table.ColumnConfig
	for _, c := range columns {
		right = append(right, table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
}
