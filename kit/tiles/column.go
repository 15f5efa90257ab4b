package tiles

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Column is one more property of chunks, for those that have it: it takes no memory until
// the first one has. The zero Column is empty and ready.
//
// A column knows nothing of the life of a chunk. What was set for a handle stays until it
// is set again, so whoever keeps a column sets it for every chunk that it is asked about.
type Column[T comparable] struct{ cells []T }

// Get returns the property of a chunk, the zero T if it was never set.
func (c *Column[T]) Get(h Handle) (v T) {
	if int(h) < len(c.cells) {
		v = c.cells[h]
	}
	return v
}

// Set gives a chunk the property. It allocates if the column is shorter than the handle,
// for a table of the given number of rows, unless v is what Get returns anyway.
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
