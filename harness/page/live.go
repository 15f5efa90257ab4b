package page

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"

	"github.com/vramyard/vramyard/harness/picture"
)

// An answer to the script of a page that is served is one piece: four bytes with the length of a description,
// little endian, the description in JSON, filled up with spaces so that all before the arrays is a multiple of
// eight bytes, and the arrays that it refers to.

// answer writes an answer.
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

// Tile answers with the blocks of a window of a trace of so many events. whole says that no block of the window is left
// out. stacks may be nil.
func Tile(w io.Writer, space *picture.Space, rects []picture.Rect, whole bool, events int, stacks Stacks) error {
	e := &encoder{}
	o := object{"complete": whole}
	e.about(o, stacks, func(w *stackWeights) { w.rects(rects, events) })
	o["rects"] = e.rects(space, rects)
	return e.answer(w, o)
}

// Moment answers with the state after an event. stacks may be nil.
func Moment(w io.Writer, at *picture.Instant, stacks Stacks) error {
	e := &encoder{}
	o := object{}
	e.about(o, stacks, func(w *stackWeights) { w.instant(at) })
	maps.Copy(o, e.instant(at))
	return e.answer(w, o)
}

// about puts a table of stacks of its own into an answer: the numbers of the page are for what the page holds.
func (e *encoder) about(o object, stacks Stacks, weigh func(*stackWeights)) {
	if stacks == nil {
		return
	}
	w := &stackWeights{of: stacks, weight: map[uint32]float64{}}
	weigh(w)
	e.stacks = w.table()
	o["stacks"] = e.stackTable(e.stacks)
}

// Series answers with the curves of the runs of a trace in some of its buckets, of which the first has a
// number. A run that is nil has none.
func Series(w io.Writer, t *picture.Trace, runs []*picture.Run, first int) error {
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
