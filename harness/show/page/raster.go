package page

import "math"

// Raster is the memory in use in each cell of events and addresses, over all blocks.
type Raster struct {
	Columns  int       // number of columns, along events
	Rows     int       // number of rows, along addresses
	Shift    int       // event i is in column i >> Shift
	RowBytes float64   // bytes per row
	Cells    []float32 // byte-events in use, by column, then from the lowest address up; a page shows 8 bits of them
}

// raster fills a Raster from left to right.
type raster struct {
	Raster
	cells  []float64 // Cells so far
	live   []float64 // by row: bytes in use
	since  []int     // by row: event up to which cells counts live
	column int       // current column
}

func newRaster(events int, space float64, columns, rows int) *raster {
	g := newGrid(events, columns)
	r := &raster{}
	r.Columns, r.Shift = g.Len(), g.Shift
	r.RowBytes = math.Max(math.Ceil(space/float64(rows)), 1)
	r.Rows = int(math.Ceil(space / r.RowBytes))
	r.cells = make([]float64, r.Columns*r.Rows)
	r.live, r.since = make([]float64, r.Rows), make([]int, r.Rows)
	return r
}

// add changes the use of size bytes from y on by n bytes for each byte, from an event on.
func (r *raster) add(event int, y, size, n float64) {
	r.advance(event)
	for row := int(y / r.RowBytes); row < r.Rows && size > 0; row++ {
		part := math.Min(size, float64(row+1)*r.RowBytes-y)
		r.settle(row, event)
		r.live[row] += n * part
		y, size = y+part, size-part
	}
}

// settle counts the use of a row in the current column, up to an event.
func (r *raster) settle(row, event int) {
	at := r.column*r.Rows + row
	r.cells[at] += r.live[row] * float64(event-r.since[row])
	r.since[row] = event
}

// advance completes the columns before an event.
func (r *raster) advance(event int) {
	for ; r.column < event>>r.Shift; r.column++ {
		r.end((r.column + 1) << r.Shift)
	}
}

// end completes a column that ends before an event.
func (r *raster) end(event int) {
	for row := range r.Rows {
		r.settle(row, event)
	}
}

// finish completes the raster of a trace with the given number of events.
func (r *raster) finish(events int) *Raster {
	if events > 0 {
		r.advance(events - 1)
		r.end(events)
	}
	done := r.Raster
	done.Cells = make([]float32, len(r.cells))
	for i, v := range r.cells {
		done.Cells[i] = float32(v)
	}
	return &done
}

// Share returns the share of a cell in use, 0 to 1.
func (r *Raster) Share(column, row, events int, space float64) float64 {
	width := min((column+1)<<r.Shift, events) - column<<r.Shift
	height := math.Min(float64(row+1)*r.RowBytes, space) - float64(row)*r.RowBytes
	return float64(r.Cells[column*r.Rows+row]) / (float64(width) * height)
}
