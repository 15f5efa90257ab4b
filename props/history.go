package props

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// holdings are the segments, and the memory mapped in others, that a strategy holds by its
// history.
type holdings struct {
	segments []device.Region // by address
	mapped   []span          // by address, as long as they can be
}

func holdingsOf(walk []alloc.Chunk, ranges []device.Region) (h holdings) {
	_ = eachRegion(walk, func(chunks []alloc.Chunk) error { // yield returns no error
		first, last := chunks[0], chunks[len(chunks)-1]
		if !inRange(ranges, first.Region) {
			h.segments = append(h.segments, device.Region{Addr: first.Region, Size: last.End().Sub(first.Region)})
		}
		return nil
	})
	slices.SortFunc(h.segments, func(a, b device.Region) int { return cmp.Compare(a.Addr, b.Addr) })
	h.mapped = spans(walk, func(c alloc.Chunk) bool { return c.State.Held() && inRange(ranges, c.Region) })
	return h
}

// apply applies an action that takes or returns memory. It returns a violation of invariant
// I59 if the action is impossible.
func (h *holdings) apply(a power.Action) error {
	it := span{a.Addr, a.Addr.Add(a.Size)}
	i, found := slices.BinarySearchFunc(h.segments, a.Addr, func(r device.Region, a device.Addr) int {
		return cmp.Compare(r.Addr, a)
	})
	switch a.Kind {
	case power.SegmentAlloc, power.SegmentMap:
		held := slices.Clone(h.mapped)
		for _, r := range h.segments {
			held = append(held, span{r.Addr, r.End()})
		}
		if twice := within(held, []span{it}); a.Size == 0 || len(twice) > 0 {
			return violated(IHistory, "%v of %d bytes at %v: %v are held", a.Kind, uint64(a.Size), a.Addr, twice)
		}
		if a.Kind == power.SegmentAlloc {
			h.segments = slices.Insert(h.segments, i, device.Region{Addr: a.Addr, Size: a.Size})
		} else {
			h.mapped = union(append(h.mapped, it))
		}
	case power.SegmentFree:
		if !found || h.segments[i].Size != a.Size {
			return violated(IHistory, "segment_free of %d bytes at %v: there is no such segment", uint64(a.Size), a.Addr)
		}
		h.segments = slices.Delete(h.segments, i, i+1)
	case power.SegmentUnmap:
		if missing := without([]span{it}, h.mapped); a.Size == 0 || len(missing) > 0 {
			return violated(IHistory, "segment_unmap of %d bytes at %v: %v are not mapped", uint64(a.Size), a.Addr, missing)
		}
		h.mapped = without(h.mapped, []span{it})
	}
	return nil
}

// CallHistory checks invariant I59 of the history of one call. Applied to the segments held before,
// the actions give the segments of the walk after it. A free was completed for exactly the chunks
// that are no longer pending. An action has the stream of its chunk. The ranges are the device's
// before and after the call.
func CallHistory(before, after []alloc.Chunk, rangesBefore, ranges []device.Region, reported []power.Action) error {
	before, after = withoutSlack(before), withoutSlack(after)
	h := holdingsOf(before, rangesBefore)
	var completed []device.Addr
	for _, a := range reported {
		look := after
		switch a.Kind {
		case power.OutOfMemory:
			continue
		case power.FreeCompleted:
			completed = append(completed, a.Addr)
			look = before
		case power.SegmentFree, power.SegmentUnmap:
			look = before
		}
		if err := h.apply(a); err != nil {
			return err
		}
		for _, c := range look {
			if c.Addr == a.Addr && a.Kind == power.FreeCompleted && c.Requested != a.Size {
				return violated(IHistory, "%v at %v reports %d bytes, requested were %d", a.Kind, a.Addr, uint64(a.Size),
					uint64(c.Requested))
			}
			if c.Addr == a.Addr && (inUse(c) || c.State == alloc.Free) && c.Stream != a.Stream {
				return violated(IHistory, "%v at %v reports stream %d, %v chunk %v is of stream %d",
					a.Kind, a.Addr, uint64(a.Stream), c.State, c.Addr, uint64(c.Stream))
			}
		}
	}
	want := holdingsOf(after, ranges)
	switch {
	case !slices.Equal(h.segments, want.segments):
		return violated(IHistory, "by the history the segments are %v, the walk shows %v", h.segments, want.segments)
	case !slices.Equal(h.mapped, want.mapped):
		return violated(IHistory, "by the history %v are mapped, the walk shows %v", h.mapped, want.mapped)
	}
	return completions(before, after, completed)
}

// completions compares the completed frees of the history with the chunks that were pending before
// and are not pending after.
func completions(before, after []alloc.Chunk, reported []device.Addr) error {
	var want []device.Addr
	for _, c := range before {
		still := func(d alloc.Chunk) bool { return d.Addr == c.Addr && d.State == alloc.Pending }
		if c.State == alloc.Pending && !slices.ContainsFunc(after, still) {
			want = append(want, c.Addr)
		}
	}
	slices.Sort(want)
	reported = slices.Sorted(slices.Values(reported))
	if !slices.Equal(reported, want) {
		return violated(IHistory, "frees were completed at %v, no longer pending are the chunks at %v", reported, want)
	}
	return nil
}

// RefusalHistory checks invariant I59 of the history of a request. If it ran out of memory, there
// is exactly one out-of-memory action, with the stream, at least the bytes of the request, and the
// free memory of the device if known. Otherwise there is no such action.
func RefusalHistory(reported []power.Action, r alloc.Request, depleted bool, left device.Size, known bool) error {
	n := 0
	for _, a := range reported {
		if a.Kind != power.OutOfMemory {
			continue
		}
		if n++; !depleted || a.Stream != r.Stream || a.Size < r.Size || a.Addr != 0 || known && a.DeviceFree != left {
			return violated(IHistory, "oom of %d bytes at %v on stream %d with %d bytes left is reported as %+v with %d left",
				uint64(a.Size), a.Addr, uint64(a.Stream), uint64(a.DeviceFree), r, uint64(left))
		}
	}
	if n != int(one(depleted)) {
		return violated(IHistory, "oom is reported %d times, want %d", n, one(depleted))
	}
	return nil
}

func (r *runner) observeHistory() error {
	if !r.powers.has(power.PowerHistorian) || r.step == 0 {
		return nil // before the first call it may hold what it was built with
	}
	left := device.Size(0)
	if r.main.dev.Config().Capacity != 0 {
		left = r.main.dev.Usage().Free()
	}
	const asked = device.CallMemoryInfo
	known := r.usage().Calls[asked].Failed == r.calls[asked].Failed
	return r.judge(
		CallHistory(r.was.walk, r.is.walk, r.was.ranges, r.is.ranges, r.reported),
		RefusalHistory(r.reported, r.request, r.outcome == depleted, left, known),
	)
}
