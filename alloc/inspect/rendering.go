package inspect

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// renderColumns is the width of a rendering.
const renderColumns = 100

// NoMemoryRendering is the rendering of a strategy that holds no region.
const NoMemoryRendering = "<allocator contains no memory>"

// Rendering draws all regions of s, one after the other, as one line of 100 characters:
// '*' if a column touches requested bytes of a live block, 'x' if it touches only bytes added by
// rounding, '_' if it touches neither. It is the picture that
// TensorFlow's BFC logs when it runs out of memory. O(chunks).
func Rendering(s alloc.Inspector) string {
	var total device.Size
	for c := range s.Walk {
		total += c.Size
	}
	if total == 0 {
		return NoMemoryRendering
	}
	line := [renderColumns]byte{}
	for i := range line {
		line[i] = '_'
	}
	var at device.Size // where the chunk starts when all regions are laid end to end
	for c := range s.Walk {
		if c.State == alloc.Live || c.State == alloc.Pending {
			// Rounding first: where both share a column, the requested bytes show.
			paint(&line, 'x', at+c.Requested, at+c.Size, total)
			paint(&line, '*', at, at+c.Requested, total)
		}
		at += c.Size
	}
	return string(line[:])
}

// paint sets the columns that the bytes [from, to) of total touch.
func paint(line *[renderColumns]byte, mark byte, from, to, total device.Size) {
	if from >= to {
		return
	}
	for i := column(from, total); i <= column(to-1, total); i++ {
		line[i] = mark
	}
}

// column returns the column of one byte: at * 100 / total in 128 bits.
func column(at, total device.Size) int {
	hi, lo := bits.Mul64(uint64(at), renderColumns)
	q, _ := bits.Div64(hi, lo, uint64(total))
	return int(q)
}
