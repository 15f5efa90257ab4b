package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/vramyard/vramyard/alloc/wrap"
	"github.com/vramyard/vramyard/device"
)

// Recorder writes the calls of a strategy as a native trace while they happen:
//
//	rec := trace.NewRecorder(file)
//	s, err := wrap.Recorded(inner, rec.Record)
//	…
//	err = rec.Close()
//
// Replaying the trace makes the same calls. The ids of allocations count from 0. A refused one also
// has an id, and a comment with the error. A free that failed becomes an illegal free: of the
// allocation, live or freed, that has or had the address, or else of the address itself.
//
// It is not safe for concurrent use, except inside [wrap.Locked]. It keeps an entry for every
// address at which a block ever began.
type Recorder struct {
	out    *bufio.Writer
	line   []byte
	next   uint64
	blocks map[device.Addr]recordedBlock // the latest block at each start
}

// recordedBlock is the latest block at an address.
type recordedBlock struct {
	id   uint64
	size device.Size
	live bool
}

// NewRecorder returns a recorder that writes to w.
func NewRecorder(w io.Writer) *Recorder {
	r := &Recorder{out: bufio.NewWriter(w), blocks: map[device.Addr]recordedBlock{}}
	fmt.Fprintf(r.out, "# %s %d\n", nativeMagic, version) // Flush returns its error
	return r
}

// Record writes an operation. Close returns the errors of the writer.
func (r *Recorder) Record(op wrap.Operation) {
	e := Event{Time: NoTime}
	tag := ""
	switch op.Kind {
	case wrap.OpAlloc:
		e, tag = r.alloc(op)
	case wrap.OpFree:
		e = r.free(op)
	case wrap.OpTrim:
		e.Kind = Trim
	case wrap.OpFrontier:
		e.Kind, e.Arg = Frontier, op.Count
	case wrap.OpClear:
		e.Kind = ClearStats
	case wrap.OpPoll:
		e.Kind = Poll
	case wrap.OpUse:
		b := r.blocks[op.Addr]
		if op.Err != nil || !b.live { // not representable in a trace
			fmt.Fprintf(r.out, "# use of %v by stream %d failed\n", op.Addr, uint64(op.Stream))
			return
		}
		e.Kind, e.ID, e.Stream = Use, b.id, op.Stream
	case wrap.OpBeginPool, wrap.OpEndPool, wrap.OpReleasePool:
		e.Kind = poolKinds[op.Kind-wrap.OpBeginPool]
		if op.Err != nil { // not representable in a trace
			fmt.Fprintf(r.out, "# %v %d failed\n", e.Kind, uint64(op.Pool))
			return
		}
		e.Arg, e.Stream, tag = uint64(op.Pool), op.Stream, textOf(op.Options)
	case wrap.OpConfigure:
		if e.Kind, tag = Conf, op.Settings; op.Err != nil { // a replay would end there
			fmt.Fprintf(r.out, "# conf %s failed\n", strconv.Quote(op.Settings))
			return
		}
	default:
		r.out.WriteString("# a call of a kind that this recorder does not know\n")
		return
	}
	// The kinds above are known, so this cannot fail.
	r.line, _ = appendEvent(r.line[:0], &e, tag)
	if op.Err != nil {
		word := "failed"
		if op.Kind == wrap.OpAlloc {
			word = "refused"
		}
		r.line = append(append(r.line, " # "+word+": "...), printable(op.Err.Error())...)
	}
	r.out.Write(append(r.line, '\n'))
}

// poolKinds are the event kinds of the calls of [power.PrivatePools].
var poolKinds = [...]Kind{PoolBegin, PoolEnd, PoolRelease}

// printable quotes a text if it does not fit into a comment as it is.
func printable(s string) string {
	if isPrintable(s) {
		return s
	}
	return strconv.Quote(s)
}

// Close flushes the buffer and returns the first error of the writer. It does not close the writer.
func (r *Recorder) Close() error { return r.out.Flush() }

func (r *Recorder) alloc(op wrap.Operation) (Event, string) {
	q := op.Request
	e := Event{
		Kind: Alloc, ID: r.next, Size: q.Size, Align: q.Align, Stream: q.Stream, Hint: q.Hint, Arg: q.Before,
		Site: q.Origin.Site(), Thread: q.Origin.Thread(), Life: q.Origin.Lifetime(), Time: NoTime,
	}
	r.next++
	if op.Err == nil {
		r.blocks[op.Block.Addr] = recordedBlock{id: e.ID, size: op.Block.Size, live: true}
	}
	if q.Tag == 0 {
		return e, ""
	}
	return e, strconv.FormatUint(q.Tag, 10)
}

func (r *Recorder) free(op wrap.Operation) Event {
	b, ok := r.blocks[op.Addr]
	switch {
	case ok && b.live && op.Err == nil:
		b.live = false
		r.blocks[op.Addr] = b
		return Event{Kind: Free, ID: b.id, Time: NoTime}
	case ok:
		return Event{Kind: BadFree, ID: b.id, Time: NoTime}
	}
	if id, offset, ok := r.inside(op.Addr); ok {
		return Event{Kind: BadFree, ID: id, Size: offset, Time: NoTime}
	}
	return Event{Kind: BadFree, Slot: NoSlot, Arg: uint64(op.Addr), Time: NoTime}
}

// inside returns the live block that contains an address. It scans every block: illegal frees are
// rare, and an index would slow down every legal call. Live blocks are disjoint, so the order of
// the map does not matter.
func (r *Recorder) inside(a device.Addr) (uint64, device.Size, bool) {
	for start, b := range r.blocks {
		if b.live && a > start && a.Sub(start) < b.size {
			return b.id, a.Sub(start), true
		}
	}
	return 0, 0, false
}
