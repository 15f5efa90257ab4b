package formats

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

// minimallocFormat is the problem format of MiniMalloc: the lifetimes of buffers.
var minimallocFormat = Format{
	Name:      "minimalloc",
	Doc:       "a problem of MiniMalloc: CSV with the columns " + minimallocHeaderLine,
	Header:    minimallocHeaderLine,
	Absent:    "streams, times in seconds, the order of what begins at the same time",
	Recognize: isMinimalloc,
	Read:      readMinimalloc,
	Write:     WriteMinimalloc,
}

// minimallocHeaderLine has the required columns.
const minimallocHeaderLine = "id,lower,upper,size"

// minimallocColumns maps MiniMalloc's column names to columns.
var minimallocColumns = map[string]int{
	"id": columnID, "buffer": columnID, "buffer_id": columnID,
	"lower": columnLower, "begin": columnLower, "start": columnLower,
	"upper": columnUpper, "end": columnUpper,
	"size": columnSize, "alignment": columnAlign, "gaps": columnGaps, "offset": columnOffset,
}

const (
	columnID = iota
	columnLower
	columnUpper
	columnSize
	columnAlign
	columnGaps
	columnOffset
	numColumns
)

// minimallocHeader returns the position of each column, -1 if it is missing, and whether the end
// column is inclusive.
func minimallocHeader(line []byte) (where [numColumns]int, inclusive, ok bool) {
	for i := range where {
		where[i] = -1
	}
	for i, name := range bytes.Split(bytes.TrimRight(line, "\r"), []byte(",")) {
		c, known := minimallocColumns[string(name)]
		if !known || where[c] >= 0 {
			return where, false, false
		}
		where[c] = i
		inclusive = inclusive || string(name) == "end"
	}
	return where, inclusive, slices.Min(where[:columnSize+1]) >= 0
}

func isMinimalloc(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), []byte("\n"))
	_, _, ok := minimallocHeader(line)
	return ok
}

// buffer is one row.
type buffer struct {
	lower, upper uint64
	size, align  device.Size
	name         string
}

// readMinimalloc reads a problem. At each moment the frees precede the allocations, each in file
// order. Moments become times.
func readMinimalloc(in *Input) (*trace.Trace, error) {
	lines, err := trace.NewLines(in, in.Name, in.budget)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	header, err := lines.Next()
	if err != nil {
		return nil, err
	}
	where, inclusive, _ := minimallocHeader(header) // recognized before
	var list []buffer
	gaps := 0
	err = in.rows(lines, bytes.Count(header, comma)+1, func(cells []string) error {
		b, err := parseBuffer(cells, where, inclusive)
		if err == nil {
			err = in.budget.Take(int64(len(b.name)))
		}
		if err == nil {
			list, err = budget.Append(in.budget, list, b)
		}
		if at := where[columnGaps]; err == nil && at >= 0 && cells[at] != "" {
			gaps++
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t, err := in.intervals(list, gaps)
	if err == nil {
		t.Header.Hash = lines.Hash()
	}
	return t, err
}

func parseBuffer(cells []string, where [numColumns]int, inclusive bool) (b buffer, err error) {
	number := func(column int, name string) (n uint64) {
		n, wrong := strconv.ParseUint(cells[where[column]], 10, 64)
		if (wrong != nil || n > math.MaxInt64) && err == nil {
			err = fmt.Errorf("%s %s: want a number from 0 to %d", name, clip([]byte(cells[where[column]])), math.MaxInt64)
		}
		return n
	}
	b.name = strings.Clone(cells[where[columnID]]) // a copy, which does not keep the whole line alive
	b.lower, b.upper = number(columnLower, "lower"), number(columnUpper, "upper")
	b.size = device.Size(number(columnSize, "size"))
	if where[columnAlign] >= 0 {
		b.align = device.Size(number(columnAlign, "alignment"))
	}
	if inclusive {
		b.upper++
	}
	switch {
	case err != nil:
		return b, err
	case b.upper <= b.lower:
		return b, errors.New("a buffer must end after it begins")
	case b.align <= 1:
		b.align = 0
	case b.align&(b.align-1) != 0:
		return b, fmt.Errorf("alignment %d: want a power of two", b.align)
	}
	return b, nil
}

// intervals converts lifetimes to a trace.
func (in *Input) intervals(list []buffer, gaps int) (*trace.Trace, error) {
	h := in.header("minimalloc")
	h.Meta = append(h.Meta, trace.Pair{Key: "time", Value: "moments of the problem, shown as nanoseconds"})
	if gaps > 0 {
		h.Meta = append(h.Meta, trace.Pair{Key: "gaps_ignored", Value: strconv.Itoa(gaps)})
	}
	type endpoint struct {
		at     uint64
		row    int
		begins bool
	}
	if err := in.budget.Take(budget.SizeOf[endpoint](2 * len(list))); err != nil {
		return nil, err
	}
	ends := make([]endpoint, 0, 2*len(list))
	for i, b := range list {
		ends = append(ends, endpoint{b.lower, i, true}, endpoint{b.upper, i, false})
	}
	slices.SortFunc(ends, func(a, b endpoint) int {
		if a.at == b.at && a.begins != b.begins {
			if a.begins {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.row, b.row))
	})
	b := trace.NewBuilderWithin(in.budget, h)
	b.Grow(len(ends))
	for _, e := range ends {
		ev := trace.Event{Kind: trace.Free, ID: uint64(e.row), Time: int64(e.at)}
		if buf := &list[e.row]; e.begins {
			ev.Kind, ev.Size, ev.Align = trace.Alloc, buf.size, buf.align
			if buf.name != strconv.Itoa(e.row) {
				ev.Tag = b.Tag(buf.name)
			}
		}
		if err := b.Add(ev); err != nil {
			return nil, err
		}
	}
	return b.Trace(), nil
}

// WriteMinimalloc writes the lifetimes of a trace as a problem of MiniMalloc. A moment ends where
// an allocation follows a free, so lifetimes overlap in the problem exactly if they do in the
// trace. Everything else in the trace is omitted. A block that is never freed lives until the end.
func WriteMinimalloc(w io.Writer, t trace.Source) error {
	var list []buffer
	var rows []int // latest row of each slot, counted from 1
	aligned, freed := false, false
	var now uint64
	err := t.Batches(func(events []trace.Event) error {
		for i := range events {
			switch e := &events[i]; e.Kind {
			case trace.Alloc, trace.LiveAtStart:
				if freed {
					now, freed = now+1, false
				}
				if n := int(e.Slot) + 1 - len(rows); n > 0 {
					rows = append(rows, make([]int, n)...)
				}
				list = append(list, buffer{lower: now, size: e.Size, align: max(e.Align, 1)})
				rows[e.Slot] = len(list)
				aligned = aligned || e.Align > 1
			case trace.Free:
				list[rows[e.Slot]-1].upper, freed = now+1, true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	line := []byte(minimallocHeaderLine)
	if aligned {
		line = append(line, ",alignment"...)
	}
	for i, b := range list {
		if b.upper == 0 {
			b.upper = now + 1
		}
		out.Write(append(line, '\n')) // Flush returns the first error
		line = fmt.Appendf(line[:0], "%d,%d,%d,%d", i, b.lower, b.upper, b.size)
		if aligned {
			line = fmt.Appendf(line, ",%d", b.align)
		}
	}
	out.Write(append(line, '\n'))
	return out.Flush()
}
