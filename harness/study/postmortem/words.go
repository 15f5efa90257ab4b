package postmortem

import (
	"fmt"
	"io"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/units"
)

// judge names the cause. loose is what would go back to the device by itself.
func (r *Report) judge(loose device.Size) {
	b := units.Bytes
	has := loose
	if r.Device != nil {
		has += *r.Device
	}
	joined := has + r.Free.Bytes - min(loose, r.Free.Bytes) + r.Pending.Bytes + r.Cached.Bytes
	least := r.Block // or a smaller region of the device
	if r.Segment > 0 {
		least = min(least, r.Segment)
	}
	say := func(c Cause, format string, args ...any) { r.Cause, r.Verdict = c, fmt.Sprintf(format, args...) }
	switch {
	case r.serves > 0:
		say(CauseAgain, "a free chunk of %s would serve: the allocator does not look again after it has given memory back", b(r.serves))
	case r.Device != nil && r.Segment > 0 && has >= r.Segment:
		say(CauseDevice, "with what would go back the device has %s, enough for the %s that it was asked for, and refused all the same", b(has), b(r.Segment))
	case joined < least && joined+r.Loss >= least:
		say(CauseRounding, "all that is free joined misses %s, and blocks have %s more than was asked for them",
			b(least-joined), b(r.Loss))
	case joined < least:
		say(CauseTooLittle, "plainly too little: even with all that is free joined %s are missing", b(least-joined))
	case r.waitingServes():
		say(CausePending, "memory that was given back would do, and a stream still uses it: %s are pending", b(r.Pending.Bytes))
	case r.apart:
		say(CauseApart, "free chunks side by side would do, and the allocator keeps them apart or sets them aside")
	case r.stream.largest >= r.Block:
		say(CauseStream, "a hole of %s would do, and serves another stream", b(r.stream.largest))
	case r.KindTop >= r.Block:
		say(CauseKind, "a hole of %s would do, and serves requests of other sizes", b(r.KindTop))
	case r.pool.largest >= r.Block:
		say(CausePool, "a hole of %s would do, and lies in %s", b(r.pool.largest), r.elsewhere())
	case has >= r.Block:
		say(CauseSegment, "the device has %s left, enough for the block, and is asked for %s", b(has), b(r.Segment))
	case has+r.Usable.Bytes-min(loose, r.Usable.Bytes) >= least:
		say(CauseScattered, "free memory would do, but it is scattered: %s free in %s, the largest %s, and %s left on the device",
			b(r.Usable.Bytes), units.Several(r.Usable.Count, "hole"), b(r.UsableTop), b(has))
	default:
		r.blame()
	}
}

// waitingServes reports whether the request only had to wait for streams.
func (r *Report) waitingServes() bool {
	return len(r.Plans) > 0 && r.Plans[0].Count == 0 && r.Plans[0].Waits > 0
}

// elsewhere returns where the memory of other pools lies, seen from the request.
func (r *Report) elsewhere() string {
	if r.Pool != 0 {
		return "another pool than the private one of the request"
	}
	return "a private pool"
}

// blame names what has most of the free bytes that the request may not use: joined with the others, but not
// without, they would be enough.
func (r *Report) blame() {
	most := device.Size(0)
	for _, x := range []struct {
		cause Cause
		bytes device.Size
		where string
	}{
		{CauseStream, r.stream.bytes, "serve other streams"},
		{CausePending, r.Pending.Bytes, "were given back and are still used by a stream"},
		{CauseKind, r.OtherKind.Bytes + r.Cached.Bytes, "serve requests of other sizes"},
		{CausePool, r.pool.bytes, "lie in " + r.elsewhere()},
	} {
		if x.bytes > most {
			most = x.bytes
			r.Cause = x.cause
			r.Verdict = fmt.Sprintf("free memory would do, but not all of it is for this request: %s %s, and lie scattered",
				units.Bytes(x.bytes), x.where)
		}
	}
}

// How much of a report is shown as text; JSON has all.
const (
	shownStreams = 4
	shownPools   = 2
	shownPins    = 3
	shownPlans   = 2
	shownBlocks  = 2
)

// text is lines of which an error ends the writing.
type text struct {
	w   io.Writer
	err error
}

// line writes a line: a name, and what there is to say.
func (t *text) line(name, format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, "  %-15s %s\n", name, fmt.Sprintf(format, args...))
	}
}

// WhichOf names one of several failures by its place, "first" or "last".
func WhichOf(place string, of int) string {
	if of == 1 {
		return "only failure"
	}
	return fmt.Sprintf("%s of %d failures", place, of)
}

// WriteText writes what came of the request, and why.
func (v *Verdict) WriteText(w io.Writer) error {
	var err error
	switch v.Outcome {
	case NoOOM:
		_, err = fmt.Fprintf(w, "%s: no request ran out of memory\n", v.Strategy)
	case NotBuilt:
		_, err = fmt.Fprintf(w, "%s: the device has no room for what the strategy takes at once\n", v.Strategy)
	case Granted, Invalid:
		_, err = fmt.Fprintf(w, "%s: event %d, allocation %d of %s on stream %d: %s, %s, %s held\n", v.Strategy, v.Event, v.ID,
			units.Bytes(v.Size), v.Stream, v.Outcome, units.Several(int(v.Calls), "device call"), units.Bytes(v.Held))
	case Refused:
		which := ""
		if v.Before == 0 && v.Failures > 0 {
			which = ", the " + WhichOf("first", v.Failures)
		}
		if _, err = fmt.Fprintf(w, "%s: event %d, allocation %d%s\n", v.Strategy, v.Event, v.ID, which); err == nil {
			err = v.Report.WriteText(w)
		}
	}
	return err
}

// WriteText writes the report in at most 25 lines.
func (r *Report) WriteText(w io.Writer) error {
	b := units.Bytes
	room := "no room"
	if r.Cause == CauseNone {
		room = "room"
	}
	if _, err := fmt.Fprintf(w, "%s for %s on stream %d: %s\n", room, b(r.Requested), r.Stream, r.Verdict); err != nil {
		return err
	}
	t := &text{w: w}
	t.line("asked", "%s, for which a hole of %s is needed%s", b(r.Requested), b(r.Block), r.segmentText())
	if o := r.Asker; o != nil && o.name() != unknown {
		t.line("asked by", "%s", units.Printable(o.name()))
	}
	t.line("device", "%s", r.deviceText())
	t.line("live", "%s in %s, %s of that rounding", b(r.Live.Bytes), units.Several(r.Live.Count, "block"), b(r.Loss))
	t.line("free", "%s in %s, the largest %s (external fragmentation %s); of use here %s, the largest %s",
		b(r.Free.Bytes), units.Several(r.Free.Count, "hole"), b(r.Largest), units.Percent(r.External), b(r.Usable.Bytes), b(r.UsableTop))
	r.writeShares(t)
	if r.Pending.Count+r.Cached.Count > 0 || r.Lost > 0 {
		t.line("not free", "%s pending on streams, %s set aside by size, %s lost", b(r.Pending.Bytes), b(r.Cached.Bytes), b(r.Lost))
	}
	if r.Empty.Count > 0 {
		t.line("empty", "%s of %s could go back whole", units.Several(r.Empty.Count, "region"), b(r.Empty.Bytes))
	}
	r.writePins(t)
	r.writePlans(t)
	return t.err
}

// segmentText tells what the device was asked for.
func (r *Report) segmentText() string {
	if r.Segment == 0 {
		return ""
	}
	return ", else " + units.Bytes(r.Segment) + " of the device"
}

// deviceText tells what is held and left.
func (r *Report) deviceText() string {
	text := units.Bytes(r.Reserved) + " held"
	if r.Device != nil {
		text += ", " + units.Bytes(*r.Device) + " left"
	} else {
		text += ", what is left is not known"
	}
	if r.Capacity > 0 {
		text += ", of " + units.Bytes(r.Capacity)
	}
	return text
}

// writeShares writes the streams, if there are several, and the private pools.
func (r *Report) writeShares(t *text) {
	b := units.Bytes
	if len(r.Streams) > 1 {
		for i, s := range r.Streams {
			if i == shownStreams {
				t.line("", "and %s", units.Several(len(r.Streams)-i, "further stream"))
				break
			}
			t.line(fmt.Sprintf("stream %d", s.Stream), "%s held, %s free, the largest hole %s, of use here %s",
				b(s.Reserved), b(s.Free), b(s.Largest), b(s.Usable))
		}
	}
	for i, s := range r.Pools {
		if i == shownPools {
			t.line("", "and %s", units.Several(len(r.Pools)-i, "further pool"))
			break
		}
		t.line(fmt.Sprintf("private pool %d", s.Pool), "%s held, %s free, the largest hole %s", b(s.Reserved), b(s.Free), b(s.Largest))
	}
}

// writePins writes who keeps regions that are partly free.
func (r *Report) writePins(t *text) {
	if len(r.Pins) == 0 {
		return
	}
	b := units.Bytes
	t.line("pinned", "%s are free in regions that are partly used, kept", b(r.Pinned.Bytes))
	for i, p := range r.Pins {
		if i == shownPins {
			t.line("", "and %s", units.Several(len(r.Pins)-i, "further place"))
			break
		}
		t.line("", "%s (%s beside nobody else's) by %s of %s in %s: %s", b(p.Pinned), b(p.Alone),
			units.Several(p.Blocks.Count, "block"), b(p.Blocks.Bytes), units.Several(p.Regions, "region"), units.Printable(p.name))
	}
}

// writePlans writes what would have made room.
func (r *Report) writePlans(t *text) {
	for i := range r.Plans {
		if i == shownPlans {
			return
		}
		p := &r.Plans[i]
		t.line("room", "%v", p)
		for k := range p.Blocks {
			if k == shownBlocks {
				t.line("", "and %d more", len(p.Blocks)-k)
				break
			}
			t.line("", "%v", &p.Blocks[k])
		}
	}
}

// String returns the plan in one line.
func (p *Plan) String() string {
	var s strings.Builder
	if p.Count == 0 {
		fmt.Fprintf(&s, "once streams are done with %s", units.Several(p.Waits, "block"))
	} else {
		fmt.Fprintf(&s, "without %s of %s", units.Several(p.Count, "block"), units.Bytes(p.Bytes))
		if p.Waits > 0 {
			fmt.Fprintf(&s, ", and once streams are done with %d", p.Waits)
		}
	}
	switch p.Way {
	case WayHole:
		fmt.Fprintf(&s, ": a hole of %s at %v", units.Bytes(p.Hole), p.Addr)
	case WayRegions:
		fmt.Fprintf(&s, ": %s of %s would go back", units.Several(len(p.Regions), "region"), units.Bytes(p.Back))
	case WayPages:
		fmt.Fprintf(&s, ": pages of %s would go back", units.Bytes(p.Back))
	}
	if p.Proven != nil {
		s.WriteString(map[bool]string{true: " (tried: granted)", false: " (tried: refused)"}[*p.Proven])
	}
	return s.String()
}

// String returns the block in one line.
func (b *Block) String() string {
	text := fmt.Sprintf("%s, %s, stream %d", units.Bytes(b.Size), b.State, b.Stream)
	if o := &b.Owner; o.Known {
		when := "made " + units.Several(o.Age, "event") + " before"
		if o.Born < 0 {
			when = "there from the start"
		}
		text += fmt.Sprintf(", id %d, %s: %s", o.ID, when, units.Printable(o.name()))
	}
	return text
}
