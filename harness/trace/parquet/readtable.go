package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/flat"
	"github.com/vramyard/vramyard/internal/budget"
)

// ReadTable reads the table of results in size bytes of r, and its metadata. It is the inverse of
// [WriteTable] and [flat.Of]: columns are found by name, in any order, and others are ignored. A
// column whose values may be absent may be missing. An object of which every column is null becomes
// a nil pointer. Only the pages of the columns of R are read; they must be compressed with zstd or
// not at all.
//
// name is the file's name or path, for messages. An error is a [trace.Error] that names the column
// and, where possible, the row, counted from 0: a missing column, one of another type, null where
// R must have a value, a value that R cannot hold, and a corrupt file. The rows are charged to
// memory; a million rows of a comparison take about the default.
//
// check is called with the metadata before the columns are read, and fails for a table of another
// form; nil: every table is read.
func ReadTable[R any](r io.ReaderAt, size int64, name string, memory *budget.Budget,
	check func(metadata map[string]string) error) ([]R, map[string]string, error) {
	t := &tableReader{r: r, memory: memory, check: check, metadata: map[string]string{}}
	rows, err := readTable[R](t, size)
	if err != nil {
		return nil, nil, &trace.Error{File: name, Err: err}
	}
	return rows, t.metadata, nil
}

// tableReader reads the columns of one file.
type tableReader struct {
	r        io.ReaderAt
	in       *parquet.File
	memory   *budget.Budget
	check    func(metadata map[string]string) error // nil: everything is right
	metadata map[string]string
	cells    []cells // readers of the columns of the row type
}

func readTable[R any](t *tableReader, size int64) (rows []R, err error) {
	if err := checkFrame(t.r, size, t.memory); err != nil {
		return nil, err
	}
	defer recoverCorrupt(&err)
	if t.in, err = openFile(t.r, size); err != nil {
		return nil, err
	}
	for _, m := range t.in.Metadata().KeyValueMetadata {
		t.metadata[m.Key] = m.Value
	}
	if t.check != nil {
		if err := t.check(t.metadata); err != nil {
			return nil, err
		}
	}
	n := int64(0)
	for _, g := range t.in.Metadata().RowGroups {
		if g.NumRows < 0 || g.NumRows > math.MaxInt32-n {
			return nil, fmt.Errorf("a group of %d rows after %d: want at most %d in all", g.NumRows, n, math.MaxInt32)
		}
		n += g.NumRows
	}
	if rows, err = budget.Make[R](t.memory, int(n)); err != nil {
		return nil, err
	}
	rows = rows[:n]
	return rows, t.fill(flat.Of(rows))
}

// fill sets all rows of a table.
func (t *tableReader) fill(table *flat.Table) error {
	decoder, err := newDecoder()
	if err != nil {
		return err
	}
	defer decoder.Close()
	memory := t.memory.Share() // for the buffers of pages
	defer memory.Close()
	if err := t.find(table.Columns(), decoder, memory); err != nil {
		return err
	}
	first := 0
	for _, g := range t.in.Metadata().RowGroups {
		// Absent values are set last: then it is known which objects exist.
		for i := range t.cells {
			c := &t.cells[i]
			if err := c.read(t.r, &g, first, func(row int, v any) error { return table.Set(row, i, v) }); err != nil {
				return fmt.Errorf("column %s: %w", c.column.Name, err)
			}
		}
		for i := range t.cells {
			c := &t.cells[i]
			for _, row := range c.absent {
				if err := table.Set(int(row), i, nil); err != nil {
					return fmt.Errorf("column %s: row %d: %w", c.column.Name, row, err)
				}
			}
		}
		first += int(g.NumRows)
	}
	return nil
}

// find makes a reader for each column.
func (t *tableReader) find(columns []flat.Column, decoder *zstd.Decoder, memory *budget.Budget) error {
	in := t.in.Root().Columns()
	for _, c := range columns {
		i := slices.IndexFunc(in, func(f *parquet.Column) bool { return f.Name() == c.Name })
		switch {
		case i < 0 && c.Optional:
			t.cells = append(t.cells, cells{pages: newPages(decoder, memory), column: c, missing: true})
			continue
		case i < 0:
			return fmt.Errorf("column %s is missing", c.Name)
		}
		f := in[i]
		want := typeOfKind(&c)
		if !f.Leaf() || f.Repeated() || !sameType(f.Type().String(), want) {
			return fmt.Errorf("column %s is %s: want %s", c.Name, typeOf(f), want)
		}
		p := newPages(decoder, memory)
		p.nulls = f.Optional()
		t.cells = append(t.cells, cells{pages: p, column: c, leaf: f.Index(), kept: t.memory})
	}
	return nil
}

// typeOfKind returns the type of a column in the file.
func typeOfKind(c *flat.Column) string {
	switch c.Kind {
	case flat.Bool:
		return "BOOLEAN"
	case flat.Int:
		return fmt.Sprintf("INT(64,%t)", c.Signed)
	case flat.Float:
		return "DOUBLE"
	}
	return "STRING"
}

// cells reads a column of a table.
type cells struct {
	*pages
	column  flat.Column
	missing bool           // in the file: no row has a value
	leaf    int            // number of the column in the file
	kept    *budget.Budget // for the values that stay
	absent  []int32        // rows without a value in the current group

	// Buffers of the current group and page.
	dictionary []any
	values     []any
	present    []uint32 // by row: 1 if it has a value
	ranks      []uint32
	numbers    []int64
}

// read sets every value of a group of rows that is not absent, the first in row first.
func (c *cells) read(r io.ReaderAt, g *format.RowGroup, first int, set func(row int, v any) error) error {
	c.dictionary, c.absent = c.dictionary[:0], c.absent[:0]
	end := first + int(g.NumRows)
	if c.missing {
		return c.skip(first, end)
	}
	if err := c.pages.open(r, &g.Columns[c.leaf].MetaData); err != nil {
		return err
	}
	for row := first; row < end; {
		p, err := c.pages.next()
		if err == nil {
			err = c.decode(&p)
		}
		if err != nil {
			return fmt.Errorf("rows from %d: %w", row, err)
		}
		if p.dictionary {
			continue
		}
		if p.count > end-row {
			return fmt.Errorf("rows from %d: a page of %d values: want at most %d", row, p.count, end-row)
		}
		values := c.values
		for i := range p.count {
			if c.nulls && c.present[i] == 0 {
				if err := c.skip(row+i, row+i+1); err != nil {
					return err
				}
				continue
			}
			if err := c.keep(row+i, values[0], set); err != nil {
				return fmt.Errorf("row %d: %w", row+i, err)
			}
			values = values[1:]
		}
		row += p.count
	}
	return nil
}

// skip notes rows without a value.
func (c *cells) skip(first, end int) (err error) {
	for row := first; row < end && err == nil; row++ {
		c.absent, err = budget.Append(c.memory, c.absent, int32(row))
	}
	return err
}

const (
	// pointed is the size in bytes of a value behind a pointer.
	pointed = 16
	// decoded is how many bytes a byte of JSON takes in a field, about: "[[],[]]" takes 8.
	decoded = 8
)

// keep sets a value and charges its memory. Texts are shared by the rows of a page.
func (c *cells) keep(row int, v any, set func(row int, v any) error) error {
	n := int64(0)
	if c.column.Optional {
		n += pointed
	}
	if text, ok := v.(string); ok && c.column.JSON {
		n += decoded * int64(len(text))
	}
	if err := c.kept.Take(n); err != nil {
		return err
	}
	return set(row, v)
}

// decode sets the dictionary to the values of a page, or present and values.
func (c *cells) decode(p *page) (err error) {
	if p.dictionary {
		c.dictionary, err = c.plainValues(p, c.dictionary)
		return err
	}
	values := *p
	if c.nulls {
		// Levels are encoded as the ranks of a dictionary of 2, without the byte for the width.
		levels := page{count: p.count, data: append([]byte{1}, p.levels...), memory: c.memory}
		if c.present, err = levels.ranks(c.present, 2); err != nil {
			return err
		}
		values.count = 0
		for _, n := range c.present {
			values.count += int(n)
		}
	}
	if !p.indexes {
		c.values, err = c.plainValues(&values, c.values)
		return err
	}
	if c.ranks, err = values.ranks(c.ranks, len(c.dictionary)); err != nil {
		return err
	}
	if c.values, err = sized(c.memory, c.values, values.count); err != nil {
		return err
	}
	for i, r := range c.ranks {
		c.values[i] = c.dictionary[r]
	}
	return nil
}

// plainValues decodes a page without indexes.
func (c *cells) plainValues(p *page, dst []any) (_ []any, err error) {
	if !p.delta && p.count > 8*len(p.data) {
		return nil, errValues
	}
	if dst, err = sized(c.memory, dst, p.count); err != nil {
		return nil, err
	}
	switch {
	case c.column.Kind == flat.Text && !p.delta:
		if err := c.kept.Take(int64(len(p.data) + pointed*p.count)); err != nil {
			return nil, err
		}
		return dst, p.texts(func(k int, text []byte) { dst[k] = string(text) })
	case c.column.Kind == flat.Bool && !p.delta:
		if len(p.data) != (p.count+7)/8 {
			return nil, errValues
		}
		for k := range dst {
			dst[k] = p.data[k/8]>>(k%8)&1 != 0
		}
		return dst, nil
	case c.column.Kind == flat.Text || c.column.Kind == flat.Bool || c.column.Kind == flat.Float && p.delta:
		return nil, errors.New("a page that is encoded as " + format.DeltaBinaryPacked.String())
	}
	if c.numbers, err = p.numbers(c.numbers); err != nil {
		return nil, err
	}
	if err := c.memory.Check(8 * int64(p.count)); err != nil { // a number in an interface takes 8 bytes more
		return nil, err
	}
	for k, n := range c.numbers {
		switch {
		case c.column.Kind == flat.Float:
			dst[k] = math.Float64frombits(uint64(n))
		case c.column.Signed:
			dst[k] = n
		default:
			dst[k] = uint64(n)
		}
	}
	return dst, nil
}
