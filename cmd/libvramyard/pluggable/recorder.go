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
	size   uint64 // bytes, or the number of a pool
	id     uint32
	stream uint16 // index of the stream
	kind   trace.Kind
}

// pieceEntries is the number of events in a piece.
const pieceEntries = 1 << 13

// recorder records the requests of a program. Ids of blocks are reused after the free completes, so
// a trace has as few ids as blocks that are live at once.
type recorder struct {
	header  trace.Header
	start   time.Time
	pieces  [][]entry
	count   int
	most    int // maximum number of events
	lost    int // number of events dropped
	streams []device.Stream
	index   map[device.Stream]uint16
}

func newRecorder(h trace.Header, most int) *recorder {
	return &recorder{header: h, start: time.Now(), most: most, index: map[device.Stream]uint16{}}
}

// note records an event. After the maximum number of events or 65,535 streams the event and all
// later ones are dropped.
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

func (r *recorder) Head() trace.Head {
	h := r.header
	if r.lost > 0 {
		h.Meta = append(h.Meta[:len(h.Meta):len(h.Meta)], trace.Pair{Key: "events_lost_at_end", Value: strconv.Itoa(r.lost)})
	}
	return trace.Head{Header: h, Events: r.count}
}

// TagOf implements [trace.Source]; PyTorch gives no tags.
func (*recorder) TagOf(*trace.Event) string { return "" }

// Batches implements [trace.Source]. The slot of an event is its id.
func (r *recorder) Batches(yield func([]trace.Event) error) error {
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

// write writes the trace to a file, atomically.
func (r *recorder) write(path string) error {
	return fileio.Write(path, io.Discard, func(w io.Writer) error { return trace.Write(w, r) })
}

// fileOf returns the name of the file of a GPU: %d is replaced by the number of the GPU and %p by
// the process id. Without %d, every GPU but the first gets its number before the extensions.
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
