package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/vramyard/vramyard/alloc/inspect"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/units"
)

// Bins writes the bins of a memory map: a column for each of the 21 that has a chunk, with its free
// chunks in the order of the search below each other, by size and then address. Live chunks, which
// are in no bin, are counted for the bin of their size. Where names the state in the first line.
func Bins(w io.Writer, where string, m *inspect.MemoryMap) error {
	out := &lines{w: w}
	listed := make([][]string, len(m.Bins))
	free, outside := 0, 0
	chunks := slices.SortedStableFunc(slices.Values(m.Chunks), func(a, b inspect.MapChunk) int {
		return cmp.Compare(a.Size, b.Size)
	})
	for i := 0; i < len(chunks); {
		c, n := chunks[i], 0
		for ; i < len(chunks) && chunks[i].Size == c.Size; i++ {
			switch {
			case chunks[i].InUse:
			case chunks[i].Bin < 0:
				outside++
			default:
				c.Bin = chunks[i].Bin
				n++
			}
		}
		if n > 0 {
			text := units.Bytes(c.Size)
			if n > 1 {
				text = fmt.Sprintf("%d × %s", n, text)
			}
			listed[c.Bin] = append(listed[c.Bin], text)
			free += n
		}
	}
	out.printf("%s: %s in %d bins", where, units.Several(free, "free chunk"), len(m.Bins))
	if outside > 0 {
		out.printf(", and %s in none", units.Several(outside, "free chunk"))
	}
	out.printf("; %s live\n", units.Bytes(m.Stats.BytesInUse))
	sheet := binSheet(m, listed)
	if len(sheet.Columns) > 1 {
		out.printf("%s\n", sheet.Terminal(w, 3))
	}
	return out.err
}

// binSheet returns the table of [Bins].
func binSheet(m *inspect.MemoryMap, listed [][]string) Sheet {
	columns := []Column{{Name: "bin"}}
	heads := [][]any{{"from"}, {"free"}, {"live"}}
	depth := 0
	var shown []int
	for b, s := range m.Bins {
		if s.ChunksInBin == 0 {
			continue
		}
		shown = append(shown, b)
		depth = max(depth, len(listed[b]))
		columns = append(columns, Column{Name: strconv.Itoa(b), Number: true})
		heads[0] = append(heads[0], units.Bytes(s.Size))
		heads[1] = append(heads[1], inBin(s.ChunksInBin-s.ChunksInUse, s.BytesInBin-s.BytesInUse))
		heads[2] = append(heads[2], inBin(s.ChunksInUse, s.BytesInUse))
	}
	for i := range depth {
		row := []any{"chunks"}
		if i > 0 {
			row[0] = ""
		}
		for _, b := range shown {
			text := ""
			if i < len(listed[b]) {
				text = listed[b][i]
			}
			row = append(row, text)
		}
		heads = append(heads, row)
	}
	return TextSheet(columns, heads...)
}

// inBin returns a number of chunks with their bytes.
func inBin(n int, bytes device.Size) string {
	if n == 0 {
		return "—"
	}
	return fmt.Sprintf("%d: %s", n, units.Bytes(bytes))
}
