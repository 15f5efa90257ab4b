package report

import (
	"fmt"
	"io"
	"iter"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/internal/units"
)

// Limits of the text form; JSON has everything.
const (
	shownStreams = 4
	shownPools   = 2
	shownPins    = 3
	shownPlans   = 2
	shownBlocks  = 2
)

// PostmortemVerdict writes the outcome of a replayed request, and why it was refused.
func PostmortemVerdict(w io.Writer, v *postmortem.Verdict) error {
	out := &lines{w: w}
	switch v.Outcome {
	case postmortem.NoOOM:
		out.printf("%s: no request ran out of memory\n", v.Strategy)
	case postmortem.NotBuilt:
		out.printf("%s: the device has no room for what the strategy takes at once\n", v.Strategy)
	case postmortem.Granted, postmortem.Invalid:
		out.printf("%s: event %d, allocation %d of %s on stream %d: %s, %s, %s held\n", v.Strategy, v.Event, v.ID,
			units.Bytes(v.Size), v.Stream, v.Outcome, units.Several(int(v.Calls), "device call"), units.Bytes(v.Held))
	case postmortem.Refused:
		which := ""
		if v.Before == 0 && v.Failures > 0 {
			which = ", the " + postmortem.WhichOf("first", v.Failures)
		}
		out.printf("%s: event %d, allocation %d%s\n", v.Strategy, v.Event, v.ID, which)
		if out.err == nil {
			return Postmortem(w, v.Report)
		}
	}
	return out.err
}

// PostmortemInstant writes the heap after an event: the counters, and a line for each chunk, which
// begins with a mark if the chunk was asked for.
func PostmortemInstant(w io.Writer, v *postmortem.Instant) error {
	out := &lines{w: w}
	out.printf("%s on %s after event %d\n%s", v.Strategy, units.Printable(v.Trace), v.Event, v.Stats)
	for i, x := range v.Chunks {
		if i == 0 || v.Chunks[i-1].Region != x.Region {
			out.printf("region %v\n", x.Region)
		}
		x.Chunk.ID = x.ID
		mark := "  "
		if x.Asked {
			mark = "> "
		}
		out.printf("%s%v", mark, x.Chunk)
		if x.Step != "" {
			out.printf(", step %q", x.Step)
		}
		if x.Operation != "" {
			out.printf(", operation %q", x.Operation)
		}
		if o := x.Owner; o != nil {
			out.printf(", ID %d of the trace, since event %d", o.ID, o.Born)
			for _, frame := range o.Stack {
				out.printf("\n      %s", frame)
			}
		}
		out.printf("\n")
	}
	for i, h := range v.History {
		if i == 0 {
			out.printf("blocks that began at the address, newest last\n")
		}
		out.printf("  event %d: requested %v, allocated %v, allocation %d\n", h.Event, h.Requested, h.Allocated, h.ID)
	}
	return out.err
}

// Postmortem explains why a request ran out of memory, in at most 25 lines.
func Postmortem(w io.Writer, r *postmortem.Report) error {
	t := &lines{w: w}
	b := units.Bytes
	room := "no room"
	if r.Cause == postmortem.CauseNone {
		room = "room"
	}
	t.printf("%s for %s on stream %d: %s\n", room, b(r.Requested), r.Stream, r.Verdict)
	t.line("requested", "%s: a hole of %s%s", b(r.Requested), b(r.Block), segmentText(r))
	if o := r.Requester; o != nil && (len(o.Stack) > 0 || o.Tag != "") {
		t.line("requested by", "%s", units.Printable(o.Name()))
	}
	t.line("device", "%s", deviceText(r))
	t.line("live", "%s in %s, %s of that rounding", b(r.Live.Bytes), units.Several(r.Live.Count, "block"), b(r.Loss))
	t.line("free", "%s in %s, the largest %s (external fragmentation %s); usable here %s, the largest %s",
		b(r.Free.Bytes), units.Several(r.Free.Count, "hole"), b(r.Largest), units.Percent(r.External), b(r.Usable.Bytes),
		b(r.UsableTop))
	t.shares(r)
	if r.Pending.Count+r.Cached.Count > 0 || r.Lost > 0 {
		t.line("not free", "%s pending on streams, %s cached by size, %s lost", b(r.Pending.Bytes),
			b(r.Cached.Bytes), b(r.Lost))
	}
	if r.Empty.Count > 0 {
		t.line("empty", "%s of %s could be released", units.Several(r.Empty.Count, "region"), b(r.Empty.Bytes))
	}
	t.pins(r)
	t.plans(r)
	return t.err
}

// segmentText returns the request to the device, if any.
func segmentText(r *postmortem.Report) string {
	if r.Segment == 0 {
		return ""
	}
	return ", or " + units.Bytes(r.Segment) + " from the device"
}

func deviceText(r *postmortem.Report) string {
	text := units.Bytes(r.Reserved) + " held"
	if r.Device != nil {
		text += ", " + units.Bytes(*r.Device) + " left"
	} else {
		text += ", free device memory unknown"
	}
	if r.Capacity > 0 {
		text += ", of " + units.Bytes(r.Capacity)
	}
	return text
}

// shares writes the streams, if there are several, and the private pools.
func (l *lines) shares(r *postmortem.Report) {
	b := units.Bytes
	if len(r.Streams) > 1 {
		for _, s := range firstOf(l, r.Streams, shownStreams, "further stream") {
			l.line(fmt.Sprintf("stream %d", s.Stream), "%s held, %s free, the largest hole %s, usable here %s",
				b(s.Reserved), b(s.Free), b(s.Largest), b(s.Usable))
		}
	}
	for _, s := range firstOf(l, r.Pools, shownPools, "further pool") {
		l.line(fmt.Sprintf("private pool %d", s.Pool), "%s held, %s free, the largest hole %s", b(s.Reserved), b(s.Free),
			b(s.Largest))
	}
}

// firstOf yields the first elements of a list, and writes the number of omitted ones.
func firstOf[T any](l *lines, list []T, most int, noun string) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for i := range list[:min(len(list), most)] {
			if !yield(i, &list[i]) {
				return
			}
		}
		if more := len(list) - most; more > 0 {
			l.line("", "and %s", units.Several(more, noun))
		}
	}
}

// pins writes the owners of blocks in partly free regions.
func (l *lines) pins(r *postmortem.Report) {
	if len(r.Pins) == 0 {
		return
	}
	b := units.Bytes
	l.line("pinned", "%s are free in partly used regions, by owner:", b(r.Pinned.Bytes))
	for _, p := range firstOf(l, r.Pins, shownPins, "further owner") {
		l.line("", "%s (%s by this owner alone) by %s of %s in %s: %s", b(p.Pinned), b(p.PinnedAlone),
			units.Several(p.Blocks.Count, "block"), b(p.Blocks.Bytes), units.Several(p.Regions, "region"),
			units.Printable(p.Name()))
	}
}

func (l *lines) plans(r *postmortem.Report) {
	for i := range r.Plans[:min(len(r.Plans), shownPlans)] {
		p := &r.Plans[i]
		l.line("room", "%v", p)
		for k := range p.Blocks {
			if k == shownBlocks {
				l.line("", "and %d more", len(p.Blocks)-k)
				break
			}
			l.line("", "%v", &p.Blocks[k])
		}
	}
}

// mostSparse bounds the sparse segments shown.
const mostSparse = 5

// FinalHeap writes the heap at the end of a snapshot.
func FinalHeap(w io.Writer, f *postmortem.Final) error {
	out := &lines{w: w}
	line := func(name, format string, args ...any) {
		out.printf("  %-10s %s\n", name, units.Printable(fmt.Sprintf(format, args...)))
	}
	line("reserved", "%s in %s", units.Bytes(f.Reserved.Bytes), units.Several(f.Reserved.Count, "segment"))
	line("live", "%s requested in %s, %s with rounding", units.Bytes(f.Requested),
		units.Several(f.Live.Count+f.Pending.Count, "block"),
		units.Bytes(f.Live.Bytes+f.Pending.Bytes))
	if f.Pending.Count > 0 {
		line("pending", "%s of that in %s, freed by the program, still in use by a stream", units.Bytes(f.Pending.Bytes),
			units.Several(f.Pending.Count, "block"))
	}
	emptyText(f, line)
	line("beside", "%s free beside blocks in use, which no call releases", units.Bytes(f.InactiveSplit))
	var free device.Size
	for i := range f.Sparse {
		free += f.Sparse[i].Free
	}
	if len(f.Sparse) > 0 {
		line("held", "%s of that in %s of which at most a tenth is in use", units.Bytes(free),
			units.Several(len(f.Sparse), "segment"))
	}
	for i := range f.Sparse[:min(len(f.Sparse), mostSparse)] {
		s := &f.Sparse[i]
		by := ""
		if len(s.By.Stack) > 0 {
			by = ": " + s.By.Name()
		}
		line("", "%s at %#x by %s of %s%s", units.Bytes(s.Bytes), uint64(s.Addr), units.Several(s.Used.Count, "block"),
			units.Bytes(s.Used.Bytes), by)
	}
	if more := len(f.Sparse) - mostSparse; more > 0 {
		line("", "and %s more", units.Several(more, "segment"))
	}
	return out.err
}

// emptyText writes the lines about memory without blocks in use.
func emptyText(f *postmortem.Final, line func(name, format string, args ...any)) {
	const returns = "torch.cuda.empty_cache() returns"
	if whole := f.Empty.Bytes - f.PoolEmpty; whole == f.Returnable && f.PoolEmpty == 0 {
		line("empty", "%s in %s, which %s", units.Bytes(whole), units.Several(f.Empty.Count, "segment"), returns)
		return
	}
	line("empty", "%s in %s", units.Bytes(f.Empty.Bytes), units.Several(f.Empty.Count, "segment"))
	line("returnable", "%s of free segments and pages, which %s", units.Bytes(f.Returnable), returns)
	if f.PoolEmpty > 0 {
		line("pools", "%s in empty segments of private pools, which a CUDA graph may still use", units.Bytes(f.PoolEmpty))
	}
}
