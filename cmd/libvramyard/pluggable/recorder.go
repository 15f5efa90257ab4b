package pluggable

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/fileio"
)

// entry is one event of a trace, in 24 bytes.
type entry struct {
	time   int64  // nanoseconds since the recorder began
	size   uint64 // bytes; the number of a pool
	id     uint32
	stream uint16 // index
	kind   trace.Kind
}

// pieceEntries is how many events are kept together, and handed on together.
const pieceEntries = 1 << 13

// recorder keeps what a program asked for. Its names of blocks are used again when a free is final,
// so that a trace has as few as are live at once.
type recorder struct {
	header  trace.Header
	start   time.Time
	pieces  [][]entry
	count   int
	most    int // events that are kept
	lost    int // events that were not
	streams []device.Stream
	index   map[device.Stream]uint16
}

func newRecorder(h trace.Header, most int) *recorder {
	return &recorder{header: h, start: time.Now(), most: most, index: map[device.Stream]uint16{}}
}

// note keeps an event. One that is beyond the bound, or on a stream beyond 65535 others, is lost,
// and so is everything behind it.
func (r *recorder) note(k trace.Kind, id uint32, size uint64, s device.Stream) {
	i, known := r.index[s]
	if r.lost > 0 || r.count == r.most || !known && len(r.streams) == 1<<16-1 {
		r.lost++
		return
	}
	if !known {
		i = uint16(len(r.streams))
		r.streams = append(r.streams, s)
		r.index[s] = i
	}
	if r.count%pieceEntries == 0 {
		r.pieces = append(r.pieces, make([]entry, 0, pieceEntries))
	}
	last := &r.pieces[len(r.pieces)-1]
	*last = append(*last, entry{int64(time.Since(r.start)), size, id, i, k})
	r.count++
}

// Head implements [trace.Source].
func (r *recorder) Head() trace.Head {
	h := r.header
	if r.lost > 0 {
		h.Meta = append(h.Meta[:len(h.Meta):len(h.Meta)], trace.Pair{Key: "events_lost_at_end", Value: strconv.Itoa(r.lost)})
	}
	return trace.Head{Header: h, Events: r.count}
}

// TagOf implements [trace.Source]; PyTorch gives no names.
func (*recorder) TagOf(*trace.Event) string { return "" }

// Pieces implements [trace.Source]. The slot of an event is its name.
func (r *recorder) Pieces(yield func([]trace.Event) error) error {
	events := make([]trace.Event, 0, pieceEntries)
	for _, piece := range r.pieces {
		events = events[:0]
		for i := range piece {
			events = append(events, r.event(&piece[i]))
		}
		if err := yield(events); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) event(e *entry) trace.Event {
	out := trace.Event{Kind: e.kind, Time: e.time, Slot: trace.NoSlot}
	switch e.kind {
	case trace.Alloc:
		out.ID, out.Slot, out.Size, out.Stream = uint64(e.id), e.id, device.Size(e.size), r.streams[e.stream]
	case trace.Use:
		out.ID, out.Slot, out.Stream = uint64(e.id), e.id, r.streams[e.stream]
	case trace.Free, trace.Completed:
		out.ID, out.Slot = uint64(e.id), e.id
	case trace.Refused:
		out.Size, out.Stream = device.Size(e.size), r.streams[e.stream]
	case trace.PoolBegin:
		out.Arg, out.Stream = e.size, r.streams[e.stream]
	case trace.PoolEnd, trace.PoolRelease:
		out.Arg = e.size
	}
	return out
}

// write writes the trace to a file, whole or not at all.
func (r *recorder) write(path string) error {
	return fileio.Write(path, io.Discard, func(w io.Writer) error { return trace.Write(w, r) })
}

// fileOf returns the name of a file of one GPU: %d stands for its number and %p for the process.
// Without %d those after the first get their number in front of the endings of the name.
func fileOf(path string, ordinal int, first bool, pid int) string {
	numbered := strings.Contains(path, "%d")
	path = strings.NewReplacer("%d", strconv.Itoa(ordinal), "%p", strconv.Itoa(pid)).Replace(path)
	if first || numbered {
		return path
	}
	dir := strings.LastIndexByte(path, '/') + 1
	base, endings, dotted := strings.Cut(path[dir:], ".")
	if dotted {
		endings = "." + endings
	}
	return fmt.Sprintf("%s%s-gpu%d%s", path[:dir], base, ordinal, endings)
}
