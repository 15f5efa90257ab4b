package postmortem

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/units"
)

// judge sets the cause. loose is the memory that is returned by itself.
func (r *Report) judge(loose device.Size) {
	b := units.Bytes
	has := loose
	if r.Device != nil {
		has += *r.Device
	}
	joined := has + r.Free.Bytes - min(loose, r.Free.Bytes) + r.Pending.Bytes + r.Cached.Bytes
	least := r.Block // or a smaller segment
	if r.Segment > 0 {
		least = min(least, r.Segment)
	}
	say := func(c Cause, format string, args ...any) { r.Cause, r.Verdict = c, fmt.Sprintf(format, args...) }
	switch {
	case r.serves > 0:
		say(CauseAgain, "a free chunk of %s would serve: the allocator does not look again after it has returned memory",
			b(r.serves))
	case r.Device != nil && r.Segment > 0 && has >= r.Segment:
		say(CauseDevice, "the device has %s including unused regions, enough for the %s requested from it, but refused",
			b(has), b(r.Segment))
	case joined < least && joined+r.Loss >= least:
		say(CauseRounding, "all free memory joined is %s too small, and rounding of live blocks takes %s",
			b(least-joined), b(r.Loss))
	case joined < least:
		say(CauseTooLittle, "too little memory: all free memory joined is %s too small", b(least-joined))
	case r.waitingServes():
		say(CausePending, "freed memory would suffice, but streams still use it: %s are pending",
			b(r.Pending.Bytes))
	case r.apart:
		say(CauseApart, "adjacent free chunks would suffice, but the allocator keeps them apart or caches them")
	case r.stream.largest >= r.Block:
		say(CauseStream, "a hole of %s would suffice, but belongs to another stream", b(r.stream.largest))
	case r.KindTop >= r.Block:
		say(CauseKind, "a hole of %s would suffice, but serves requests of other sizes", b(r.KindTop))
	case r.pool.largest >= r.Block:
		say(CausePool, "a hole of %s would suffice, but lies in %s", b(r.pool.largest), r.otherPools())
	case has >= r.Block:
		say(CauseSegment, "the device has %s left, enough for the block, but %s are requested from it", b(has), b(r.Segment))
	case has+r.Usable.Bytes-min(loose, r.Usable.Bytes) >= least:
		say(CauseScattered, "free memory would suffice, but it is scattered: %s free in %s, the largest %s, and %s left on "+
			"the device",
			b(r.Usable.Bytes), units.Several(r.Usable.Count, "hole"), b(r.UsableTop), b(has))
	default:
		r.blame()
	}
}

func (r *Report) waitingServes() bool {
	return len(r.Plans) > 0 && r.Plans[0].Count == 0 && r.Plans[0].Waits > 0
}

func (r *Report) otherPools() string {
	if r.Pool != 0 {
		return "another pool than the request's private pool"
	}
	return "a private pool"
}

// blame sets the cause to the largest part of the free memory that the request may not use: with
// it, but not without, there would be enough.
func (r *Report) blame() {
	most := device.Size(0)
	for _, x := range []struct {
		cause Cause
		bytes device.Size
		where string
	}{
		{CauseStream, r.stream.bytes, "belong to other streams"},
		{CausePending, r.Pending.Bytes, "are freed but still used by a stream"},
		{CauseKind, r.OtherKind.Bytes + r.Cached.Bytes, "serve requests of other sizes"},
		{CausePool, r.pool.bytes, "lie in " + r.otherPools()},
	} {
		if x.bytes > most {
			most = x.bytes
			r.Cause = x.cause
			r.Verdict = fmt.Sprintf("free memory would suffice, but not all of it is usable for this request: %s %s",
				units.Bytes(x.bytes), x.where)
		}
	}
}

// WhichOf names one of several failures by its position, "first" or "last".
func WhichOf(place string, of int) string {
	if of == 1 {
		return "only failure"
	}
	return fmt.Sprintf("%s of %d failures", place, of)
}

// String formats the plan as one line.
func (p *Plan) String() string {
	var s strings.Builder
	if p.Count == 0 {
		fmt.Fprintf(&s, "once streams no longer use %s", units.Several(p.Waits, "block"))
	} else {
		fmt.Fprintf(&s, "without %s of %s", units.Several(p.Count, "block"), units.Bytes(p.Bytes))
		if p.Waits > 0 {
			fmt.Fprintf(&s, ", and once streams no longer use %d", p.Waits)
		}
	}
	switch p.Way {
	case WayHole:
		fmt.Fprintf(&s, ": a hole of %s at %v", units.Bytes(p.Hole), p.Addr)
	case WayRegions:
		fmt.Fprintf(&s, ": %s of %s would be returned", units.Several(len(p.Regions), "region"), units.Bytes(p.Back))
	case WayPages:
		fmt.Fprintf(&s, ": pages of %s would be returned", units.Bytes(p.Back))
	}
	if p.Proven != nil {
		s.WriteString(map[bool]string{true: " (tried: granted)", false: " (tried: refused)"}[*p.Proven])
	}
	return s.String()
}

// String formats the block as one line.
func (b *Block) String() string {
	text := fmt.Sprintf("%s, %s, stream %d", units.Bytes(b.Size), b.State, b.Stream)
	if o := &b.Owner; o.Known {
		when := "allocated " + units.Several(o.Age, "event") + " before"
		if o.Born < 0 {
			when = "live from the start"
		}
		text += fmt.Sprintf(", id %d, %s: %s", o.ID, when, units.Printable(o.Name()))
	}
	return text
}
