package props

import (
	"errors"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// Disjoint checks invariant I10: a block that was just granted shares no byte with a live
// block of the model.
func Disjoint(m *Model, b alloc.Block) error {
	if g, ok := m.Overlapping(b); ok {
		return violated(IDisjoint, "block %v of %d bytes overlaps live block %v of %d bytes (allocation %d)",
			b.Addr, uint64(b.Size), g.Block.Addr, uint64(g.Block.Size), g.ID)
	}
	return nil
}

// Contained checks invariant I11: a block lies inside one region held from the device.
// With joined, regions that touch count as one.
func Contained(b alloc.Block, held []device.Region, joined bool) error {
	at, left := b.Addr, b.Size
	for _, r := range held {
		if !r.Contains(at) {
			continue
		}
		here := min(left, r.End().Sub(at))
		if left -= here; left == 0 {
			return nil
		}
		if at = r.End(); !joined {
			break
		}
	}
	return violated(IContained, "block %v of %d bytes: its last %d bytes are in no region with the rest",
		b.Addr, uint64(b.Size), uint64(left))
}

// Aligned checks invariant I12: a block starts at a multiple of the alignment asked for.
func Aligned(b alloc.Block, r alloc.Request) error {
	if r.Align != 0 && !b.Addr.IsAligned(r.Align) {
		return violated(IAligned, "block %v was asked for at a multiple of %d", b.Addr, uint64(r.Align))
	}
	return nil
}

// GrantSize checks invariant I13: a block has at least the bytes asked for, at least one,
// and at most what maxGrant promises; nil promises nothing.
func GrantSize(b alloc.Block, r alloc.Request, maxGrant func(alloc.Request) device.Size) error {
	if b.Size < max(r.Size, 1) {
		return violated(IGrant, "block %v has %d bytes, asked were %d", b.Addr, uint64(b.Size), uint64(r.Size))
	}
	if maxGrant != nil && b.Size > maxGrant(r) {
		return violated(IGrant, "block %v for %d bytes has %d, promised are at most %d",
			b.Addr, uint64(r.Size), uint64(b.Size), uint64(maxGrant(r)))
	}
	return nil
}

// Shown checks invariant I14: the live chunks of the walk are the live blocks of the model,
// with the same sizes.
func Shown(walk []alloc.Chunk, m *Model) error {
	n := 0
	for _, c := range walk {
		if c.State != alloc.Live {
			continue
		}
		n++
		g, ok := m.At(c.Addr)
		switch {
		case !ok:
			return violated(IShown, "live chunk %v of %d bytes: no live block starts there", c.Addr, uint64(c.Size))
		case c.Size != g.Block.Size || c.Requested != g.Request.Size:
			return violated(IShown, "live chunk %v shows %d bytes for %d, granted were %d for %d (allocation %d)", c.Addr,
				uint64(c.Size), uint64(c.Requested), uint64(g.Block.Size), uint64(g.Request.Size), g.ID)
		}
	}
	if n != len(m.Live()) {
		return violated(IShown, "the walk shows %d live chunks, %d blocks are live", n, len(m.Live()))
	}
	return nil
}

// Labels checks invariant I15: a live chunk carries the stream and the tag of its request.
func Labels(walk []alloc.Chunk, m *Model) error {
	for _, c := range walk {
		if c.State != alloc.Live {
			continue
		}
		g, ok := m.At(c.Addr)
		if ok && (c.Stream != g.Request.Stream || c.Tag != g.Request.Tag) {
			return violated(ILabels, "live chunk %v has stream %d and tag %d, its request had %d and %d", c.Addr,
				uint64(c.Stream), c.Tag, uint64(g.Request.Stream), g.Request.Tag)
		}
	}
	return nil
}

// RequestAnswer checks invariant I22: a request that can never be granted is answered by
// alloc.ErrInvalidRequest, any other by a block or by alloc.ErrOutOfMemory. The ceiling is
// the largest request that the strategy can grant; known reports whether it promised one.
func RequestAnswer(p *promise.Set, r alloc.Request, ceiling device.Size, known bool, err error) error {
	legal, illegal := true, true // which answers are right; both where nothing is promised
	switch {
	case r.Size == 0:
		legal, illegal = p.ZeroSize, !p.ZeroSize
	case r.Size > ceiling:
		legal = false
	case known:
		illegal = false
	default:
		illegal = r.Size > 1<<48 // without a ceiling, a size may overflow when it is rounded
	}
	switch {
	case r.Align == 0 || !legal:
	case !device.IsPowerOfTwo(r.Align):
		legal, illegal = false, true
	case p.Honours != nil:
		honoured := p.Honours(r)
		legal, illegal = legal && honoured, illegal || !honoured
	case r.Align > p.Quantum:
		illegal = true
	}
	invalid := errors.Is(err, alloc.ErrInvalidRequest)
	switch {
	case err != nil && !invalid && !errors.Is(err, alloc.ErrOutOfMemory):
		return violated(IRequestAnswer, "%+v was answered by %q: want a block or one of the two errors for it", r, err)
	case invalid && !illegal:
		return violated(IRequestAnswer, "%+v is legal and was answered by %q", r, err)
	case !invalid && !legal:
		return violated(IRequestAnswer, "%+v can never be granted and was answered by %v, want %q",
			r, quoted(err), alloc.ErrInvalidRequest)
	}
	return nil
}

// FreeAnswer checks invariant I23: freeing a live block succeeds, freeing anything else is
// answered by alloc.ErrInvalidFree. Address 0 is ignored if that is promised.
func FreeAnswer(p *promise.Set, m *Model, a device.Addr, err error) error {
	g, live := m.At(a)
	switch {
	case live && err != nil:
		return violated(IFreeAnswer, "free of %v (allocation %d) was answered by %q", a, g.ID, err)
	case a == 0 && p.FreesNull:
		if err != nil {
			return violated(IFreeAnswer, "free of address 0, which is ignored, was answered by %q", err)
		}
	case !live && !errors.Is(err, alloc.ErrInvalidFree):
		return violated(IFreeAnswer, "no live block starts at %v and its free was answered by %v, want %q",
			a, quoted(err), alloc.ErrInvalidFree)
	}
	return nil
}
