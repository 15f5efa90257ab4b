package page

import (
	"cmp"
	"slices"
)

// The minimum that thinning leaves.
const (
	leastBuckets  = 128
	leastCells    = 32 // columns and rows of the raster
	leastOfAKind  = 64 // blocks, regions, chunks, marks, tags
	leastFailures = 8
)

// Thinner returns copies of the pictures of a trace and its runs with about half as much detail,
// down to a minimum. Peaks, failures per bucket, the first failures, and the snapshots' events are
// kept. The originals do not change.
func (t *Trace) Thinner(runs []*Picture) (*Trace, []*Picture) {
	buckets := Pick{To: t.Grid.Len()}
	if t.Grid.Len() > leastBuckets {
		buckets.Shift = 1
	}
	thin := t.Pick(buckets)
	if n := len(t.Marks); n > leastOfAKind {
		thin.Marks = nil
		for i := 0; i < n; i += 2 {
			thin.Marks = append(thin.Marks, t.Marks[i])
		}
		thin.MarksOmitted += n - len(thin.Marks)
	}
	thin.Tags = t.Tags[:max(min(len(t.Tags), leastOfAKind), len(t.Tags)/2)]
	all := make([]*Picture, len(runs))
	for i, r := range runs {
		if r != nil {
			all[i] = r.thinner(thin, buckets)
		}
	}
	return thin, all
}

// thinner returns the picture with about half as much detail.
func (r *Picture) thinner(t *Trace, buckets Pick) *Picture {
	thin := r.Pick(buckets)
	thin.Failures = slices.Clone(r.Failures[:half(len(r.Failures), leastFailures)])
	for i := range thin.Failures {
		thin.Failures[i].Tag = t.known(thin.Failures[i].Tag)
	}
	rects := newTopK[Rect](half(len(r.Rects), leastOfAKind))
	for i := range r.Rects {
		x := r.Rects[i]
		x.Tag = t.known(x.Tag)
		rects.add(x, x.weight(t.Grid.Events))
	}
	thin.Rects = rects.kept(byBirth)
	thin.RectsOmitted = r.RectsOmitted.and(rects.Count, rects.Weight)
	regions := newTopK[ReservedRange](half(len(r.Regions), leastOfAKind))
	for i := range r.Regions {
		regions.add(r.Regions[i], r.Regions[i].weight(t.Grid.Events))
	}
	thin.Regions = regions.kept(byStart)
	thin.RegionsOmitted = r.RegionsOmitted.and(regions.Count, regions.Weight)
	thin.Raster = r.Raster.thinner()
	thin.Snapshots = slices.Clone(r.Snapshots)
	for i := range thin.Snapshots {
		x := &thin.Snapshots[i]
		x.keep(half(len(x.Chunks), leastOfAKind))
		for k := range x.Chunks {
			x.Chunks[k].Tag = t.known(x.Chunks[k].Tag)
		}
	}
	return thin
}

// half returns n/2, but at least min(n, least).
func half(n, least int) int { return max(n/2, min(n, least)) }

// known returns the index of a tag, or 0 if the tag has been dropped.
func (t *Trace) known(tag uint32) uint32 {
	if int(tag) < len(t.Tags) {
		return tag
	}
	return 0
}

// and adds omitted items.
func (l Omitted) and(count int, byteEvents float64) Omitted {
	return Omitted{l.Count + count, l.ByteEvents + byteEvents}
}

// thinner returns the raster with half as many columns and rows.
func (r *Raster) thinner() *Raster {
	thin := *r
	if r.Columns > leastCells {
		thin.Shift, thin.Columns = r.Shift+1, (r.Columns+1)/2
	}
	if r.Rows > leastCells {
		thin.RowBytes, thin.Rows = 2*r.RowBytes, (r.Rows+1)/2
	}
	thin.Cells = make([]float32, thin.Columns*thin.Rows)
	for i, v := range r.Cells {
		column, row := i/r.Rows>>(thin.Shift-r.Shift), i%r.Rows
		if thin.Rows != r.Rows {
			row /= 2
		}
		thin.Cells[column*thin.Rows+row] += v
	}
	return &thin
}

// keep reduces a snapshot to its largest regions, one for 16 chunks, and their largest chunks.
func (x *Snapshot) keep(chunks int) {
	total := len(x.Chunks) + x.ChunksOmitted
	regions := chunks/16 + leastOfAKind
	order := largest(len(x.Regions), regions, func(i int) uint64 { return uint64(x.Regions[i].Size) })
	number := make(map[uint32]uint32, len(order))
	var areas []SnapshotRegion
	for _, i := range order {
		number[uint32(i)] = uint32(len(areas))
		areas = append(areas, x.Regions[i])
	}
	var inside []Cell
	for _, c := range x.Chunks {
		if n, ok := number[c.Region]; ok {
			c.Region = n
			inside = append(inside, c)
		}
	}
	kept := make([]Cell, 0, min(chunks, len(inside)))
	for _, i := range largest(len(inside), chunks, func(i int) uint64 { return uint64(inside[i].Size) }) {
		kept = append(kept, inside[i])
	}
	x.RegionsOmitted += len(x.Regions) - len(areas)
	x.Regions, x.Chunks, x.ChunksOmitted = areas, kept, total-len(kept)
}

// largest returns the indices of the most highest values below n, in order.
func largest(n, most int, value func(i int) uint64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if n <= most {
		return order
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(value(j), value(i)), cmp.Compare(i, j)) })
	order = order[:most]
	slices.Sort(order)
	return order
}
