package props

import (
	"fmt"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

type pair struct {
	name      string
	got, want uint64
}

func differing(n Number, source string, pairs []pair) error {
	for _, p := range pairs {
		if p.got != p.want {
			return violated(n, "Stats.%s is %d, %s says %d", p.name, p.got, source, p.want)
		}
	}
	return nil
}

// Accounting checks invariant I16: the sums of the statistics are sums over the walk.
func Accounting(walk []alloc.Chunk, s alloc.Stats) error {
	var live, regions uint64
	var requested, allocated, pending, reserved device.Size
	for i, c := range walk {
		if i == 0 || c.Region != walk[i-1].Region {
			regions++
		}
		if c.State.Held() {
			reserved += c.Size
		}
		switch c.State {
		case alloc.Live:
			live++
			requested += c.Requested
			allocated += c.Size
		case alloc.Pending:
			pending += c.Size
		}
	}
	pairs := [...]pair{
		{"Live", uint64(s.Live), live},
		{"Requested", uint64(s.Requested), uint64(requested)},
		{"Allocated", uint64(s.Allocated), uint64(allocated)},
		{"Active", uint64(s.Active), uint64(allocated + pending)},
		{"Reserved", uint64(s.Reserved), uint64(reserved)},
		{"Regions", uint64(s.Regions), regions},
	}
	return differing(IAccounting, "the walk", pairs[:])
}

// Nesting checks invariant I17: requested <= allocated <= active <= reserved, and no peak
// is below its present value.
func Nesting(s alloc.Stats) error {
	for _, o := range [...]struct {
		low, high           string
		lowBytes, highBytes device.Size
	}{
		{"Requested", "Allocated", s.Requested, s.Allocated},
		{"Allocated", "Active", s.Allocated, s.Active},
		{"Active", "Reserved", s.Active, s.Reserved},
		{"Requested", "PeakRequested", s.Requested, s.PeakRequested},
		{"Allocated", "PeakAllocated", s.Allocated, s.PeakAllocated},
		{"Active", "PeakActive", s.Active, s.PeakActive},
		{"Reserved", "PeakReserved", s.Reserved, s.PeakReserved},
	} {
		if o.lowBytes > o.highBytes {
			return violated(INesting, "Stats.%s is %d, above Stats.%s of %d", o.low, uint64(o.lowBytes), o.high,
				uint64(o.highBytes))
		}
	}
	return nil
}

// Counters checks invariant I18: the counters of the statistics equal the counts of the model.
func Counters(s, want alloc.Stats) error {
	pairs := [...]pair{
		{"Allocs", s.Allocs, want.Allocs},
		{"Frees", s.Frees, want.Frees},
		{"OOMs", s.OOMs, want.OOMs},
		{"Live", uint64(s.Live), uint64(want.Live)},
		{"Requested", uint64(s.Requested), uint64(want.Requested)},
		{"Allocated", uint64(s.Allocated), uint64(want.Allocated)},
		{"PeakRequested", uint64(s.PeakRequested), uint64(want.PeakRequested)},
		{"PeakAllocated", uint64(s.PeakAllocated), uint64(want.PeakAllocated)},
		{"PeakActive", uint64(s.PeakActive), uint64(want.PeakActive)},
		{"LargestAlloc", uint64(s.LargestAlloc), uint64(want.LargestAlloc)},
	}
	return differing(ICounters, "the model", pairs[:])
}

// DeviceAccount checks invariant I19: the statistics about regions equal the account of the
// device. Memory that lies in no region is counted apart. With joined, a region may stand for
// several reservations, so regions and releases are not compared.
func DeviceAccount(s alloc.Stats, u device.Usage, joined bool) error {
	pairs := [...]pair{
		{"Reserved and Forgotten", uint64(s.Reserved + s.Forgotten), uint64(u.Held)},
		{"PeakReserved", uint64(s.PeakReserved), uint64(u.PeakHeld)},
		{"Reserves", s.Reserves, u.Calls.Obtained()},
		{"ReserveFailures", s.ReserveFailures, u.Calls.Refused()},
		{"Regions", uint64(s.Regions), uint64(u.Regions + u.Ranges)},
		{"Releases", s.Releases, u.Calls.Returned()},
	}
	n := len(pairs)
	if joined {
		n -= 2
	}
	return differing(IDeviceAccount, "the device", pairs[:n])
}

// Limit checks invariant I20: no more is reserved than the limit, where there is one.
func Limit(s alloc.Stats) error {
	if s.Limit != 0 && s.Reserved > s.Limit {
		return violated(ILimit, "Stats.Reserved is %d, above Stats.Limit of %d", uint64(s.Reserved), uint64(s.Limit))
	}
	return nil
}

// SameLive checks invariant I25: an out-of-memory answer changed no live chunk. The walks
// are those before and after the call.
func SameLive(before, after []alloc.Chunk) error {
	i := 0
	next := func() (alloc.Chunk, bool) {
		for i < len(before) {
			i++
			if before[i-1].State == alloc.Live {
				return before[i-1], true
			}
		}
		return alloc.Chunk{}, false
	}
	for _, c := range after {
		if c.State != alloc.Live {
			continue
		}
		switch old, ok := next(); {
		case !ok:
			return violated(IOutOfMemory, "live chunk %v was not there before", c.Addr)
		case old.Addr != c.Addr || old.Size != c.Size || old.Requested != c.Requested || old.Tag != c.Tag:
			return violated(IOutOfMemory, "live chunk %+v became %+v", old, c)
		}
	}
	if old, ok := next(); ok {
		return violated(IOutOfMemory, "live chunk %v is gone", old.Addr)
	}
	return nil
}

// SameWalk checks invariant I24: a refused mistake changed nothing that the walk or the
// statistics show.
func SameWalk(before, after []alloc.Chunk, s, t alloc.Stats) error {
	for i := range max(len(before), len(after)) {
		switch {
		case i >= len(before):
			return violated(IRefusal, "chunk %+v was not there before", after[i])
		case i >= len(after):
			return violated(IRefusal, "chunk %+v is gone", before[i])
		case before[i] != after[i]:
			return violated(IRefusal, "chunk %+v became %+v", before[i], after[i])
		}
	}
	if s != t {
		return violated(IRefusal, "statistics %s became %s", fmt.Sprintf("%+v", s), fmt.Sprintf("%+v", t))
	}
	return nil
}

// Trimmed checks invariant I29: a trim returned the bytes by which the reserved bytes fell, and
// left nothing that could be released: no region, and no whole page of a range, without a live or
// pending block. The argument page is the size of a page in bytes, counted from the start of its
// range. With kept, memory may be left for another reason.
func Trimmed(
	walk []alloc.Chunk, ranges []device.Region, page device.Size, before, after alloc.Stats,
	returned device.Size, kept bool,
) error {
	if before.Reserved-after.Reserved != returned {
		return violated(ITrim, "trim says %d bytes, Stats.Reserved fell from %d to %d",
			uint64(returned), uint64(before.Reserved), uint64(after.Reserved))
	}
	if kept {
		return nil
	}
	return eachRegion(walk, func(chunks []alloc.Chunk) error {
		if inRange(ranges, chunks[0].Region) {
			return trimmedRange(chunks, page)
		}
		for _, c := range chunks {
			if c.State == alloc.Live || c.State == alloc.Pending {
				return nil
			}
		}
		return violated(ITrim, "region %v has no live block and was kept", chunks[0].Region)
	})
}

// trimmedRange looks for a whole page in a row of chunks that have memory and are not in use.
func trimmedRange(chunks []alloc.Chunk, page device.Size) error {
	start := chunks[0].Region
	from := start // of the row
	for _, c := range chunks {
		switch c.State {
		case alloc.Free, alloc.Cached, alloc.Slack:
			first := (from.Sub(start) + page - 1) / page * page // no power of two
			if c.End().Sub(start) >= first+page {
				return violated(ITrim, "the page at %v of range %v has no live block and kept its memory", start.Add(first), start)
			}
		default:
			from = c.End()
		}
	}
	return nil
}

// Drained checks invariant I30: with every block freed, no chunk is live or pending and
// nothing is in use.
func Drained(walk []alloc.Chunk, s alloc.Stats) error {
	for _, c := range walk {
		if c.State == alloc.Live || c.State == alloc.Pending {
			return violated(IDrain, "every block is freed and chunk %v is %v", c.Addr, c.State)
		}
	}
	if s.Live != 0 || s.Active != 0 {
		return violated(IDrain, "every block is freed and Stats has %d live blocks, %d active bytes", s.Live,
			uint64(s.Active))
	}
	return nil
}

// Holding checks invariant I28: a free gave no region back.
func Holding(before, after alloc.Stats) error {
	if before.Reserved != after.Reserved || before.Regions != after.Regions {
		return violated(IHolding, "Free changed what is held from %d bytes in %d regions to %d in %d",
			uint64(before.Reserved), before.Regions, uint64(after.Reserved), after.Regions)
	}
	return nil
}

// Honest checks invariant I26: after a request ran out of memory, the walk has no free chunk from
// which the strategy promised to serve it.
func Honest(walk []alloc.Chunk, r alloc.Request, serves func(alloc.Chunk, alloc.Request) bool) error {
	for _, c := range walk {
		if c.State == alloc.Free && serves(c, r) {
			return violated(IHonest, "%+v ran out of memory while free chunk %v of %d bytes serves it", r, c.Addr,
				uint64(c.Size))
		}
	}
	return nil
}

// RefusalRecord checks invariant I27: the recorded refusal is of this request, for a reason of the
// right kind, with the holes of the walk. The device refused or granted a reservation during the
// request according to refused and granted.
func RefusalRecord(walk []alloc.Chunk, f power.Refusal, r alloc.Request, outOfMemory, refused, granted bool) error {
	var largest, free device.Size
	for _, c := range walk {
		if c.State == alloc.Free {
			largest = max(largest, c.Size)
			free += c.Size
		}
	}
	ofMemory := f.Reason == power.ReasonLimit || f.Reason == power.ReasonDevice || f.Reason == power.ReasonUnusable
	switch {
	case f.Request != r:
		return violated(IRecord, "the last refusal is of %+v, refused was %+v", f.Request, r)
	case f.Reason == power.ReasonNone || ofMemory != outOfMemory:
		return violated(IRecord, "%+v was refused for %q, which does not match the error", r, f.Reason)
	case f.Reason == power.ReasonDevice && (!refused || f.Device == nil):
		return violated(IRecord, "%+v was refused because the device refused (%v), and it did not", r, f.Device)
	case f.Reason == power.ReasonUnusable && !granted:
		return violated(IRecord, "%+v was refused because a new region did not serve, but no region was reserved", r)
	case outOfMemory && f.LargestHole != largest:
		return violated(IRecord, "%+v: the largest hole is recorded as %d bytes, the walk shows %d",
			r, uint64(f.LargestHole), uint64(largest))
	case outOfMemory && f.Free != free:
		return violated(IRecord, "%+v: the free bytes are recorded as %d, the walk shows %d", r, uint64(f.Free), uint64(free))
	}
	return nil
}
