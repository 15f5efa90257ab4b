package props

import (
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
)

// Of a strategy that is [power.Referenced], the first instance frees by address and the twin by
// reference. Both must give the same answers from then on, so each way checks the other.

// staleKept bounds the freed blocks whose references are tried again.
const staleKept = 8

// adapt makes the twin free by reference.
func (r *runner) adapt(m *machine, c *Call) {
	if m == r.twin && c.Kind == OpFree && r.powers.has(power.PowerReferenced) {
		c.ref = m.blocks[c.nth].Ref
	}
}

// Referenced checks invariant I73 of a block that was just granted: it has a reference.
func Referenced(b alloc.Block) error {
	if b.Ref == 0 {
		return violated(IReference, "block %v has no reference", b.Addr)
	}
	return nil
}

// remember notes a block that the twin freed.
func (r *runner) remember(b alloc.Block) {
	if len(r.stale) == staleKept {
		r.stale = slices.Delete(r.stale, 0, 1)
	}
	r.stale = append(r.stale, b)
}

// misreference checks invariant I73 of the twin after a free: references that are stale, of another
// block or of none are refused.
func (r *runner) misreference() error {
	if len(r.machines) == 1 || !r.powers.has(power.PowerReferenced) {
		return nil
	}
	last := r.stale[len(r.stale)-1]
	r.wrong = append(r.wrong[:0], last, r.stale[0], alloc.Block{Addr: last.Addr, Ref: ^uint32(0)})
	if n := len(r.twin.blocks); n > 0 {
		other := r.twin.blocks[r.step%n]
		r.wrong = append(r.wrong, alloc.Block{Addr: last.Addr, Ref: other.Ref}, alloc.Block{Addr: other.Addr, Ref: last.Ref})
	}
	for _, b := range r.wrong {
		if slices.ContainsFunc(r.twin.blocks, func(l alloc.Block) bool { return l.Addr == b.Addr && l.Ref == b.Ref }) {
			continue // it is the reference of a live block by now
		}
		err := r.twin.do(&Call{Op: Op{Kind: OpDoubleFree}, Addr: b.Addr, ref: b.Ref}).Err
		if !errors.Is(err, alloc.ErrInvalidFree) {
			return r.judge(violated(IReference, "free of %v by reference %d, which no live block there has, was answered by %v",
				b.Addr, b.Ref, quoted(err)))
		}
	}
	if r.thorough || r.step%sampleEvery == 0 {
		return r.judge(checked(r.twin.Check()))
	}
	return nil
}
