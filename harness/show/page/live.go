package page

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"math"
	"math/bits"
)

// A response to the script of a live page consists of the length of a description as four bytes,
// little endian; the description as JSON, padded with spaces so that the arrays start at a multiple
// of eight bytes; and the arrays it refers to.

func (e *encoder) answer(w io.Writer, o object) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	for (4+len(text))%8 != 0 {
		text = append(text, ' ')
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text)))
	if _, err := w.Write(append(b, text...)); err != nil {
		return err
	}
	_, err = w.Write(e.data)
	return err
}

// WriteTile writes the blocks of a window, sorted by birth, of a trace with the given number of
// events. Complete means that no block of the window is omitted. Stacks may be nil.
func WriteTile(w io.Writer, space *Space, rects []Rect, complete bool, events int, stacks Stacks) error {
	e := &encoder{}
	o := object{"complete": complete}
	e.ownStacks(o, stacks, func(w *stackWeights) { w.rects(rects, events) })
	o["rects"] = e.packed(space, rects)
	return e.answer(w, o)
}

// packed encodes rectangles, sorted by birth, in a third of the size of [encoder.rects]: as
// differences modulo 2^32, so that Never works too, in columns of minimal width.
func (e *encoder) packed(space *Space, rects []Rect) object {
	of := func(f func(r *Rect) uint64) object { return e.narrow(column(rects, f)) }
	last := uint32(0)
	o := object{
		"n":    len(rects),
		"y":    of(func(r *Rect) uint64 { return uint64(space.Y(r.Addr)) }),
		"size": of(func(r *Rect) uint64 { return uint64(r.Size) }),
		"loss": of(func(r *Rect) uint64 { return uint64(r.Size - r.Requested) }),
		"born": of(func(r *Rect) uint64 {
			d := r.Born - last
			last = r.Born
			return uint64(d)
		}),
		"life":   of(func(r *Rect) uint64 { return uint64(r.Reclaimed - r.Born) }),
		"tail":   of(func(r *Rect) uint64 { return uint64(r.Reclaimed - r.Freed) }),
		"tag":    of(func(r *Rect) uint64 { return uint64(r.Tag) }),
		"stream": of(func(r *Rect) uint64 { return uint64(r.Stream) }),
		"class":  e.i16(column(rects, func(r *Rect) int16 { return class(r.Class) })),
		"id":     of(func(r *Rect) uint64 { return r.ID }),
	}
	if e.stacks != nil {
		o["stack"] = of(func(r *Rect) uint64 { return uint64(e.stacks.numberOf(r.ID)) })
	}
	return o
}

// narrow encodes integers as multiples of their largest common power of two, in the narrowest type
// that fits.
func (e *encoder) narrow(v []uint64) object {
	var all, most uint64
	for _, x := range v {
		all |= x
		most = max(most, x)
	}
	shift := 0
	if all != 0 {
		shift = bits.TrailingZeros64(all)
	}
	o := object{"by": uint64(1) << shift}
	switch most >>= shift; {
	case most <= math.MaxUint8:
		o["v"] = e.u8(column(v, func(x *uint64) uint8 { return uint8(*x >> shift) }))
	case most <= math.MaxUint16:
		o["v"] = e.u16(column(v, func(x *uint64) uint16 { return uint16(*x >> shift) }))
	case most <= math.MaxUint32:
		o["v"] = e.u32(column(v, func(x *uint64) uint32 { return uint32(*x >> shift) }))
	default:
		o["v"] = e.f64(column(v, func(x *uint64) float64 { return float64(*x >> shift) }))
	}
	return o
}

// WriteSnapshot writes a snapshot. Stacks may be nil.
func WriteSnapshot(w io.Writer, at *Snapshot, stacks Stacks) error {
	e := &encoder{}
	o := object{}
	e.ownStacks(o, stacks, func(w *stackWeights) { w.instant(at) })
	maps.Copy(o, e.instant(at))
	return e.answer(w, o)
}

// ownStacks adds a stack table to a response: the page's table covers only its own blocks.
func (e *encoder) ownStacks(o object, stacks Stacks, weigh func(*stackWeights)) {
	if stacks == nil {
		return
	}
	w := &stackWeights{of: stacks, weight: map[uint32]float64{}}
	weigh(w)
	e.stacks = w.table()
	o["stacks"] = e.stackTable(e.stacks)
}

// WriteSeries writes the curves of all runs of a trace whose buckets were picked; the first bucket
// has the number first. A nil run has no curves.
func WriteSeries(w io.Writer, t *Trace, runs []*Picture, first int) error {
	e := &encoder{}
	o := object{"shift": t.Grid.Shift}
	e.axis(o, t, first)
	list := make([]any, len(runs))
	for i, r := range runs {
		if r != nil {
			list[i] = e.series(r)
		}
	}
	o["runs"] = list
	return e.answer(w, o)
}
