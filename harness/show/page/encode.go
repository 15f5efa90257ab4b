package page

import (
	"encoding/json"
	"math"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
)

// object is a JSON object. Keys are written in alphabetical order.
type object map[string]any

// encoder encodes pictures for the script of the page.
type encoder struct {
	arena
	err    error       // first error of encoding JSON
	stacks *stackTable // of the current trace; nil: no stacks known
}

// callerJSON encodes a value of the caller's report.
func (e *encoder) callerJSON(v any) any {
	plain, err := trimmed(v)
	if e.err == nil {
		e.err = err
	}
	return plain
}

// column maps f over a list.
func column[T, V any](list []T, f func(*T) V) []V {
	v := make([]V, len(list))
	for i := range list {
		v[i] = f(&list[i])
	}
	return v
}

func (e *encoder) trace(t *Traced) object {
	p := t.Picture
	o := object{
		"name": clip(p.Head.Header.Name), "sha256": p.Head.Header.Hash, "events": p.Head.Events,
		"source": column(p.Head.Header.Meta, func(m *trace.Pair) [2]string {
			return [2]string{clip(m.Key), clip(m.Value)}
		}),
		"lower_bound_bytes": p.LowerBound,
		"marks": column(p.Marks, func(m *Mark) object {
			return object{"event": m.Event, "time": known(m.Time), "text": clip(m.Text)}
		}),
		"marks_left_out": p.MarksOmitted,
		"tags":           column(p.Tags, func(tag *string) string { return clip(*tag) }),
		"streams":        p.Streams,
	}
	e.axis(o, p, 0)
	if e.stacks = stacksOf(t); e.stacks != nil {
		o["stacks"] = e.stackTable(e.stacks)
	}
	if t.Top != nil && t.Top.Peak.Event >= 0 {
		o["top"] = e.topTable(t.Top)
	}
	runs := make([]object, len(t.Runs))
	for i := range t.Runs {
		runs[i] = e.run(p, &t.Runs[i])
	}
	o["runs"] = runs
	return o
}

// axis encodes the buckets, numbered from from, and the trace's own figures per bucket.
func (e *encoder) axis(o object, p *Trace, from int) {
	n := len(p.Bound)
	first, last := make([]uint32, n), make([]uint32, n)
	for i := range n {
		first[i], last[i] = uint32(p.Grid.First(from+i)), uint32(p.Grid.Last(from+i))
	}
	o["buckets"] = object{"n": n, "first": e.u32(first), "last": e.u32(last)}
	o["bound"], o["time"] = e.f64(p.Bound), nil
	if p.Times != nil {
		o["time"] = e.f64(column(p.Times, func(t *int64) float64 { return float64(*t) }))
	}
}

// known returns a time, or nil for trace.NoTime.
func known(t int64) any {
	if t == trace.NoTime {
		return nil
	}
	return t
}

func (e *encoder) run(t *Trace, r *Run) object {
	p := r.Picture
	o := object{
		"strategy": clip(r.Strategy), "config": r.Config, "color": r.Color, "figures": e.callerJSON(r.Figures),
	}
	if p == nil {
		o["missing"] = clip(r.Missing)
		return o
	}
	o["device"] = object{"capacity_bytes": p.Capacity, "settings": e.callerJSON(r.Device)}
	o["series"] = e.series(p)
	o["peaks"] = peaks(p)
	report := e.callerJSON(r.Report)
	o["failures"], o["failure_count"], o["first_oom"] = failures(p, report), p.Failed, nil
	if p.FirstOOM >= 0 {
		o["first_oom"] = object{"event": p.FirstOOM, "report": report}
	}
	o["map"] = e.blocks(t, p)
	instants := make([]object, len(p.Snapshots))
	for i := range p.Snapshots {
		instants[i] = e.instant(&p.Snapshots[i])
	}
	o["instants"] = instants
	o["latency"] = nil
	if p.Alloc != nil {
		o["latency"] = object{"alloc": e.histogram(p.Alloc), "free": e.histogram(p.Free)}
	}
	return o
}

// series encodes the curves and counts by bucket.
func (e *encoder) series(p *Picture) object {
	c := &p.Curves
	curve := func(c Curve) object { return object{"max": e.f64(c.Max), "min": e.f64(c.Min)} }
	ratio := func(c Curve) object { return object{"max": e.f32(c.Max), "min": e.f32(c.Min)} }
	calls := object{}
	for kind, n := range p.Calls {
		if n != nil {
			calls[device.Call(kind).String()] = e.u32(n)
		}
	}
	return object{
		"requested": curve(c.Requested), "allocated": curve(c.Allocated), "active": curve(c.Active),
		"reserved": curve(c.Reserved), "pending": curve(c.Pending), "largest_free": curve(c.LargestFree),
		"internal": ratio(c.Internal), "external": ratio(c.External),
		"calls": calls, "device_time": e.f64(p.DeviceTime), "oom": e.u32(p.OOMs),
	}
}

func peaks(p *Picture) []object {
	list := []object{}
	for k, peak := range p.Peaks {
		if peak.Event >= 0 {
			list = append(list, object{"what": Sum(k).String(), "event": peak.Event, "bytes": peak.Bytes})
		}
	}
	return list
}

// failures encodes the failed requests. The report of the first OOM is attached to it.
func failures(p *Picture, report any) []object {
	list := make([]object, len(p.Failures))
	for i := range p.Failures {
		f := &p.Failures[i]
		list[i] = object{
			"event": f.Event, "time": known(f.Time), "requested": f.Requested, "id": f.ID, "tag": f.Tag, "stream": f.Stream,
			"text": clip(f.Error), "reason": f.Reason, "free": f.Free, "hole": f.Hole, "report": nil,
		}
		if f.Event == p.FirstOOM {
			list[i]["report"] = report
		}
	}
	return list
}

func (e *encoder) blocks(t *Trace, p *Picture) object {
	y := func(a device.Addr) float64 { return p.Space.Y(a) }
	regions, numbers := p.Regions, map[device.Addr]uint32{}
	number := func(s *ReservedRange) uint32 {
		if _, ok := numbers[s.Region]; !ok {
			numbers[s.Region] = uint32(len(numbers))
		}
		return numbers[s.Region]
	}
	return object{
		"space": p.Space.Bytes,
		"ranges": column(p.Space.Ranges, func(r *Range) object {
			return object{"addr": r.Addr, "size": r.Size, "y": r.Y}
		}),
		"regions": object{
			"y":        e.f64(column(regions, func(s *ReservedRange) float64 { return y(s.Addr) })),
			"size":     e.f64(column(regions, func(s *ReservedRange) float64 { return float64(s.Size) })),
			"region":   e.u32(column(regions, number)),
			"born":     e.u32(column(regions, func(s *ReservedRange) uint32 { return s.Born })),
			"dies":     e.u32(column(regions, func(s *ReservedRange) uint32 { return s.Released })),
			"stream":   e.u16(column(regions, func(s *ReservedRange) uint16 { return s.Stream })),
			"pool":     e.u16(column(regions, func(s *ReservedRange) uint16 { return s.Pool })),
			"left_out": omitted(p.RegionsOmitted),
		},
		"rects":    e.rects(&p.Space, p.Rects),
		"left_out": omitted(p.RectsOmitted), "complete": p.RectsOmitted.Count == 0,
		"raster": e.raster(t, p),
	}
}

func (e *encoder) rects(space *Space, rects []Rect) object {
	o := object{
		"y":         e.f64(column(rects, func(r *Rect) float64 { return space.Y(r.Addr) })),
		"size":      e.f64(column(rects, func(r *Rect) float64 { return float64(r.Size) })),
		"requested": e.f64(column(rects, func(r *Rect) float64 { return float64(r.Requested) })),
		"born":      e.u32(column(rects, func(r *Rect) uint32 { return r.Born })),
		"freed":     e.u32(column(rects, func(r *Rect) uint32 { return r.Freed })),
		"dies":      e.u32(column(rects, func(r *Rect) uint32 { return r.Reclaimed })),
		"tag":       e.u32(column(rects, func(r *Rect) uint32 { return r.Tag })),
		"stream":    e.u16(column(rects, func(r *Rect) uint16 { return r.Stream })),
		"class":     e.i16(column(rects, func(r *Rect) int16 { return class(r.Class) })),
		"id":        e.f64(column(rects, func(r *Rect) float64 { return float64(r.ID) })),
	}
	if e.stacks != nil {
		o["stack"] = e.u32(column(rects, func(r *Rect) uint32 { return e.stacks.numberOf(r.ID) }))
	}
	return o
}

// omitted encodes omitted items.
func omitted(l Omitted) object { return object{"count": l.Count, "byte_events": l.ByteEvents} }

// class clamps a class to 16 bits.
func class(c int32) int16 { return int16(max(math.MinInt16, min(c, math.MaxInt16))) }

// raster encodes the raster in 8 bits a cell. A cell that is not empty is never 0.
func (e *encoder) raster(t *Trace, p *Picture) object {
	r := p.Raster
	cells := make([]uint8, len(r.Cells))
	for i := range cells {
		if r.Cells[i] > 0 {
			share := r.Share(i/r.Rows, i%r.Rows, t.Grid.Events, p.Space.Bytes)
			cells[i] = uint8(max(1, math.Round(255*min(share, 1))))
		}
	}
	return object{
		"w": r.Columns, "h": r.Rows, "column_events": 1 << r.Shift, "row_bytes": r.RowBytes, "data": e.u8(cells),
	}
}

func (e *encoder) instant(x *Snapshot) object {
	c := x.Chunks
	chunks := object{
		"region":    e.u32(column(c, func(x *Cell) uint32 { return x.Region })),
		"addr":      e.f64(column(c, func(x *Cell) float64 { return float64(x.Addr) })),
		"size":      e.f64(column(c, func(x *Cell) float64 { return float64(x.Size) })),
		"requested": e.f64(column(c, func(x *Cell) float64 { return float64(x.Requested) })),
		"state":     e.u8(column(c, func(x *Cell) uint8 { return uint8(x.State) })),
		"class":     e.i16(column(c, func(x *Cell) int16 { return class(x.Class) })),
		"stream":    e.u16(column(c, func(x *Cell) uint16 { return x.Stream })),
		"tag":       e.u32(column(c, func(x *Cell) uint32 { return x.Tag })),
		"id":        e.f64(column(c, func(x *Cell) float64 { return float64(x.ID) })),
	}
	if e.stacks != nil {
		chunks["stack"] = e.u32(column(c, func(x *Cell) uint32 {
			if holdsBlock(x) {
				return e.stacks.numberOf(x.ID)
			}
			return stackUnknown
		}))
	}
	return object{
		"event": x.Event, "labels": x.Labels, "more": x.ChunksOmitted, "regions_more": x.RegionsOmitted,
		"regions": column(x.Regions, func(r *SnapshotRegion) object {
			return object{"addr": r.Addr, "size": r.Size, "stream": r.Stream, "pool": r.Pool}
		}),
		"chunks": chunks,
	}
}

func (e *encoder) histogram(h *replay.Histogram) object {
	var upTo, count []float64
	for ns, n := range h.Buckets {
		upTo, count = append(upTo, float64(ns)), append(count, float64(n))
	}
	return object{"upto_ns": e.f64(upTo), "count": e.f64(count)}
}

// states returns the names of chunk states, by number.
func states() (names []string) {
	for s := alloc.State(0); s.String() != "invalid"; s++ {
		names = append(names, s.String())
	}
	return names
}

// parts returns an object as JSON with "<" and similar characters escaped, and its arrays in
// base64.
func (e *encoder) parts(o object) (about, data string, err error) {
	if e.err != nil {
		return "", "", e.err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return "", "", err
	}
	data, err = e.text()
	return string(text), data, err
}
