package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/study/diff"
	"github.com/vramyard/vramyard/internal/units"
)

const (
	mostSheets = 60   // in a page
	mostRows   = 2000 // in a table
)

// plain returns the page of a result of unknown form: its objects and lists as tables.
func plain(name string, text []byte) (*page.Report, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%s: data after the result", name)
	}
	p := plainPage{r: &page.Report{Kind: "view", Title: name}}
	p.object("all", fields)
	if p.left > 0 {
		p.r.Texts = append(p.r.Texts, page.Text{
			Title: "Omitted", Body: fmt.Sprintf("%d more tables of this file.", p.left),
		})
	}
	return p.r, nil
}

// plainPage collects tables.
type plainPage struct {
	r    *page.Report
	left int // omitted tables
}

// sheet adds a table if it fits.
func (p *plainPage) sheet(s report.Sheet) {
	if len(p.r.Sheets) == mostSheets {
		p.left++
		return
	}
	p.r.Sheets = append(p.r.Sheets, s)
}

// object adds the fields of an object.
func (p *plainPage) object(title string, fields map[string]any) {
	s := report.Sheet{Title: units.Printable(title), Columns: []report.Column{{Name: "field"}, {Name: "value"}}}
	var deeper []string
	for _, name := range sortedNames(fields) {
		if !isPlain(fields[name]) {
			deeper = append(deeper, name)
			continue
		}
		s.Rows = append(s.Rows, []report.Cell{{Text: units.Printable(name)}, plainCell(name, fields[name])})
	}
	if len(s.Rows) > 0 {
		p.sheet(s)
	}
	for _, name := range deeper {
		p.value(title+", "+name, fields[name])
	}
}

func (p *plainPage) value(title string, v any) {
	switch v := v.(type) {
	case map[string]any:
		p.object(title, v)
	case []any:
		p.list(title, v)
	}
}

// list adds a list: a row per element, a column per plain field.
func (p *plainPage) list(title string, list []any) {
	columns := map[string]any{}
	for _, v := range list {
		for name, x := range fieldsOf(v) {
			if isPlain(x) {
				columns[name] = nil
			}
		}
	}
	names := sortedNames(columns)
	s := report.Sheet{Title: units.Printable(title), Columns: []report.Column{{Name: "number", Number: true}}}
	for _, name := range names {
		s.Columns = append(s.Columns, report.Column{Name: units.Printable(name), Number: true})
	}
	for i, v := range list[:min(len(list), mostRows)] {
		fields := fieldsOf(v)
		row := []report.Cell{{Text: strconv.Itoa(i + 1), Number: true}}
		for _, name := range names {
			row = append(row, plainCell(name, fields[name]))
		}
		s.Rows = append(s.Rows, row)
	}
	if len(list) > mostRows {
		s.Title += fmt.Sprintf(" (the first %d of %d)", mostRows, len(list))
	}
	if len(names) > 0 {
		p.sheet(s)
	}
	for i, v := range list {
		at := fmt.Sprintf("%s %d", title, i+1)
		fields, ok := v.(map[string]any)
		if !ok {
			p.value(at, v)
			continue
		}
		for _, name := range sortedNames(fields) {
			p.value(at+", "+name, fields[name])
		}
	}
}

// fieldsOf returns the fields of an object, or another value as a single field.
func fieldsOf(v any) map[string]any {
	if fields, ok := v.(map[string]any); ok {
		return fields
	}
	return map[string]any{"value": v}
}

// isPlain reports whether a value is neither an object nor a list.
func isPlain(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// plainCell formats a plain value.
func plainCell(name string, v any) report.Cell {
	switch v := v.(type) {
	case json.Number:
		n, err := strconv.ParseUint(v.String(), 10, 63)
		if err == nil && diff.UnitOf(name) == diff.UnitBytes {
			return report.Cell{Text: units.Bytes(device.Size(n)), Value: v.String(), Number: true}
		}
		return report.Cell{Text: v.String(), Number: true}
	case string:
		return report.Cell{Text: units.Printable(v)}
	case bool:
		return report.Cell{Text: strconv.FormatBool(v)}
	}
	return report.Cell{Text: "—"}
}

func sortedNames(fields map[string]any) []string {
	return slices.Sorted(maps.Keys(fields))
}
