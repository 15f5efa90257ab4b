package props

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// Placed checks invariant I61: a block has the promised address and size, and the promised memory
// was taken for it.
func Placed(b alloc.Block, want promise.Placement, was, is alloc.Stats) error {
	switch {
	case want == promise.Placement{}:
		return nil
	case want.Addr != 0 && b.Addr != want.Addr, b.Size != want.Size:
		return violated(IPlacement, "the block at %v has %d bytes, want %d at %v (0 is anywhere)",
			b.Addr, uint64(b.Size), uint64(want.Size), want.Addr)
	case is.Reserved != was.Reserved+want.Takes:
		return violated(IPlacement, "for block %v the bytes held went from %d to %d, want %d more",
			b.Addr, uint64(was.Reserved), uint64(is.Reserved), uint64(want.Takes))
	}
	return nil
}

// observePlacement checks the address of a granted block. Calls are skipped in which pending
// blocks may have become free, or in which a refusal, of the device or by a limit, made the
// strategy try something else.
func (r *runner) observePlacement() error {
	places := r.subject.Promises.Places
	switch {
	case places == nil || !r.isRequest || r.outcome != changed,
		refusals(r.usage().Calls) != refusals(r.calls),
		r.is.stats.Limit != 0 && len(r.main.limiter.returned) > 0,
		!r.capturing() && slices.ContainsFunc(r.was.walk, pendingChunk):
		return nil
	}
	// The device chooses the bytes that it adds to a region.
	was, is := r.was.stats, r.is.stats
	was.Reserved -= slackIn(r.was.walk)
	is.Reserved -= slackIn(r.is.walk)
	return r.judge(Placed(r.block, places(r.was.walk, r.request, r.into(r.request)), was, is))
}

func slackIn(walk []alloc.Chunk) (n device.Size) {
	for _, c := range walk {
		if c.State == alloc.Slack {
			n += c.Size
		}
	}
	return n
}

// ReturnedInOrder checks invariant I62 of a trim with the walk before it: the regions that went
// back did so in the promised order. Memory returned otherwise is ignored. A nil order
// demands nothing.
func ReturnedInOrder(before []alloc.Chunk, returned []device.Region, order func(a, b alloc.Chunk) int) error {
	if order == nil {
		return nil
	}
	heads, whole := map[device.Addr]alloc.Chunk{}, map[device.Addr]device.Size{}
	_ = eachRegion(before, func(chunks []alloc.Chunk) error { // yield returns no error
		head := chunks[0]
		head.Size = chunks[len(chunks)-1].End().Sub(head.Region)
		whole[head.Region] = head.Size
		head.Size -= slackIn(chunks) // the device's addition
		heads[head.Region] = head
		return nil
	})
	var last alloc.Chunk
	for _, region := range returned {
		head, ok := heads[region.Addr]
		if !ok || whole[region.Addr] != region.Size {
			continue
		}
		if last.Size != 0 && order(last, head) >= 0 {
			return violated(IReturnOrder, "region %v of %d bytes went back before %v of %d bytes",
				last.Region, uint64(last.Size), head.Region, uint64(head.Size))
		}
		last = head
	}
	return nil
}
