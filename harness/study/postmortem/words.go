package postmortem

import (
	"fmt"
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
		say(CauseAgain, "a free chunk of %s would serve: the allocator does not look again after it has given memory back",
			b(r.serves))
	case r.Device != nil && r.Segment > 0 && has >= r.Segment:
		say(CauseDevice, "with what would go back the device has %s, enough for the %s that it was asked for, and refused "+
			"all the same", b(has), b(r.Segment))
	case joined < least && joined+r.Loss >= least:
		say(CauseRounding, "all that is free joined misses %s, and blocks have %s more than was asked for them",
			b(least-joined), b(r.Loss))
	case joined < least:
		say(CauseTooLittle, "plainly too little: even with all that is free joined %s are missing", b(least-joined))
	case r.waitingServes():
		say(CausePending, "memory that was given back would do, and a stream still uses it: %s are pending",
			b(r.Pending.Bytes))
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
		say(CauseScattered, "free memory would do, but it is scattered: %s free in %s, the largest %s, and %s left on "+
			"the device",
			b(r.Usable.Bytes), units.Several(r.Usable.Count, "hole"), b(r.UsableTop), b(has))
	default:
		r.blame()
	}
}

func (r *Report) waitingServes() bool {
	return len(r.Plans) > 0 && r.Plans[0].Count == 0 && r.Plans[0].Waits > 0
}

func (r *Report) elsewhere() string {
	if r.Pool != 0 {
		return "another pool than the private one of the request"
	}
	return "a private pool"
}

// blame names what has most of the free bytes that the request may not use: joined with the others,
// but not without, they would be enough.
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

// WhichOf names one of several failures by its place, "first" or "last".
func WhichOf(place string, of int) string {
	if of == 1 {
		return "only failure"
	}
	return fmt.Sprintf("%s of %d failures", place, of)
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
		text += fmt.Sprintf(", id %d, %s: %s", o.ID, when, units.Printable(o.Name()))
	}
	return text
}
