package tiles

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Column is an optional property of chunks: it takes no memory until the first chunk has it. The
// zero value is empty and ready.
//
// A column is not cleared when a chunk is retired: a value stays until it is set again. So the
// owner of a column sets it for every chunk that it reads.
type Column[T comparable] struct{ cells []T }

// Get returns the property of a chunk, the zero T if it was never set.
func (c *Column[T]) Get(h Handle) (v T) {
	if int(h) < len(c.cells) {
		v = c.cells[h]
	}
	return v
}

// Set sets the property of a chunk in a table of the given number of rows. It allocates if the
// column is shorter than the handle, unless v is the zero value.
func (c *Column[T]) Set(h Handle, v T, rows int) {
	if int(h) >= len(c.cells) {
		var zero T
		if v == zero {
			return
		}
		c.cells = append(c.cells, make([]T, rows-len(c.cells))...)
	}
	c.cells[h] = v
}

// Bytes returns the host memory of the column, unused capacity included.
func (c *Column[T]) Bytes() device.Size { return index.BytesOf(c.cells) }
