package page

import "math"

// Raster shows how much of each cell of events and addresses blocks take, all of them.
type Raster struct {
	Columns  int       // parts of the axis of events
	Rows     int       // parts of the axis of addresses
	Shift    int       // event i is in column i >> Shift
	RowBytes float64   // bytes that a row stands for
	Cells    []float32 // byte-events in use, column by column, each from the lowest address; a page shows 8 bits of them
}

// raster fills a Raster from left to right.
type raster struct {
	Raster
	cells  []float64 // its Cells so far
	live   []float64 // by row: bytes in use
	since  []int     // by row: the event from which on that counts
	column int       // that is filled now
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

// add changes by n bytes for each byte what is in use from a place on, after an event.
func (r *raster) add(event int, y, size, n float64) {
	r.advance(event)
	for row := int(y / r.RowBytes); row < r.Rows && size > 0; row++ {
		part := math.Min(size, float64(row+1)*r.RowBytes-y)
		r.settle(row, event)
		r.live[row] += n * part
		y, size = y+part, size-part
	}
}

// settle counts what was in use in a row of the column up to before an event.
func (r *raster) settle(row, event int) {
	at := r.column*r.Rows + row
	r.cells[at] += r.live[row] * float64(event-r.since[row])
	r.since[row] = event
}

// advance completes the columns before that of an event.
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

// finish completes the raster of a replay that took so many events.
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

// Share returns how much of a cell is in use, 0 to 1.
func (r *Raster) Share(column, row, events int, space float64) float64 {
	width := min((column+1)<<r.Shift, events) - column<<r.Shift
	height := math.Min(float64(row+1)*r.RowBytes, space) - float64(row)*r.RowBytes
	return float64(r.Cells[column*r.Rows+row]) / (float64(width) * height)
}
