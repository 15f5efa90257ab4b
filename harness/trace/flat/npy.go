package flat

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

// WriteNPY writes a table of numbers as a structured array of NumPy, version 1.0 of its file
// format. It fails for a column of another kind and for one whose values may be absent.
func (t *Table) WriteNPY(w io.Writer) error {
	fields := make([]string, len(t.columns))
	for i, c := range t.columns {
		kind := "<u8"
		switch {
		case c.Optional || c.Kind != Int && c.Kind != Float:
			return fmt.Errorf("column %s: want numbers only", c.Name)
		case c.Kind == Float:
			kind = "<f8"
		case c.Signed:
			kind = "<i8"
		}
		fields[i] = fmt.Sprintf("('%s', '%s')", c.Name, kind)
	}
	const before, unit = 10, 64 // magic, version and length; the values begin at a multiple of unit
	head := fmt.Sprintf("{'descr': [%s], 'fortran_order': False, 'shape': (%d,)}", strings.Join(fields, ", "), t.Len())
	head += strings.Repeat(" ", unit-1-(before+len(head))%unit) + "\n"
	out := bufio.NewWriter(w)
	_, _ = out.WriteString("\x93NUMPY\x01\x00") // the writer keeps the first error
	row := binary.LittleEndian.AppendUint16(nil, uint16(len(head)))
	row = append(row, head...)
	for r := range t.rows {
		for i := range t.columns {
			v, err := t.Value(r, i)
			if err != nil {
				return fmt.Errorf("row %d, %s: %w", r, t.columns[i].Name, err)
			}
			row = binary.LittleEndian.AppendUint64(row, bitsOf(v))
		}
		_, _ = out.Write(row)
		row = row[:0]
	}
	_, _ = out.Write(row) // the head of a table without rows
	return out.Flush()
}

// bitsOf returns a number as 64 bits.
func bitsOf(v any) uint64 {
	switch v := v.(type) {
	case int64:
		return uint64(v)
	case float64:
		return math.Float64bits(v)
	}
	return v.(uint64)
}
