package props

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// Move is one block that a strategy moved.
type Move struct {
	From, To alloc.Block // where it was, and where it is
}

// pinned reports whether a block must keep its place when others are moved. Any predicate that a
// move does not change is suitable.
func pinned(c alloc.Chunk) bool { return c.Requested%5 == 3 }

// compact checks invariant I66 of an instance with live blocks.
func (m *machine) compact(p *promise.Set) error {
	if !power.Has(m.Strategy, power.PowerMover) {
		return nil
	}
	m.limiter.begin()
	before, was := bounded(m.Walk), m.Stats()
	var moves []Move
	steps := max(mostCalls, 8*len(before)) // a few for each block are enough
	step := func() {
		if steps--; steps < 0 {
			panic(runaway("Compact went on after it had seen every block eight times"))
		}
	}
	n, err := power.Compact(m.Strategy, func(c alloc.Chunk) bool {
		step()
		return !pinned(c)
	}, func(from, to alloc.Block) {
		step()
		moves = append(moves, Move{from, to})
	})
	if err := corrupted(err); err != nil {
		return err
	}
	after := bounded(m.Walk)
	alignOf := func(c alloc.Chunk) device.Size { return max(m.aligns[c.Addr], p.Quantum, 1) }
	found := []error{
		Tiling(after), Moved(before, moves, n, err), Slid(before, after, moves, alignOf), Accounting(after, m.Stats()),
	}
	if was != m.Stats() {
		found = append(found, violated(IMoved, "the statistics were %+v, and are %+v after blocks were moved", was,
			m.Stats()))
	}
	found = append(found, Coalescing(after, p.MustMerge), Classes(after, p.ClassOf),
		Hole(after, power.LargestFree(m.Strategy)))
	if power.Has(m.Strategy, power.PowerFreeWalker) {
		found = append(found, FreeList(after, bounded(func(yield func(alloc.Chunk) bool) {
			power.WalkFree(m.Strategy, yield)
		})))
	}
	if err := cmp.Or(found...); err != nil {
		return err
	}
	if err := checked(m.Check()); err != nil || len(moves) == 0 || !power.Has(m.Strategy, power.PowerReferenced) {
		return err
	}
	last := moves[len(moves)-1].To
	if err := power.FreeRef(m.Strategy, last); err != nil {
		return violated(IReference, "free of %v by reference %d, where it was moved, was answered by %v", last.Addr, last.Ref,
			quoted(err))
	}
	return checked(m.Check())
}

// Moved checks the moves of a compaction (invariant I66). Each is of a live block that may be
// moved, goes down, keeps the size, and covers no byte of a block that has not moved yet. The
// moved bytes sum up to n. Before is the walk before.
func Moved(before []alloc.Chunk, moves []Move, n device.Size, err error) error {
	if err != nil {
		return violated(IMoved, "blocks could not be moved: %v", err)
	}
	blocks := slices.DeleteFunc(slices.Clone(before), func(c alloc.Chunk) bool { return c.State != alloc.Live })
	for _, m := range moves {
		i := slices.IndexFunc(blocks, func(c alloc.Chunk) bool { return c.Addr == m.From.Addr && c.Size == m.From.Size })
		switch {
		case i < 0 || pinned(blocks[i]):
			return violated(IMoved, "%v was moved, where no block was that may be moved", textOf(m.From))
		case m.To.Size != m.From.Size || m.To.Addr >= m.From.Addr || m.To.Addr < blocks[i].Region:
			return violated(IMoved, "%v was moved to %v", textOf(m.From), textOf(m.To))
		}
		over := slices.IndexFunc(blocks, func(c alloc.Chunk) bool {
			return c.Addr != m.From.Addr && c.Addr < m.To.Addr.Add(m.To.Size) && m.To.Addr < c.End()
		})
		if over >= 0 {
			return violated(IMoved, "%v was moved to %v, over block %v", textOf(m.From), textOf(m.To), blocks[over].Addr)
		}
		blocks[i].Addr = m.To.Addr
		n -= m.To.Size
	}
	if n != 0 {
		return violated(IMoved, "Compact reports %d bytes more than the moved blocks have", uint64(n))
	}
	return nil
}

// Slid checks the blocks after a compaction (invariant I66). Each lies at the destination of its
// move, unchanged, in the same order, and below a movable block there is only the room that its
// alignment wastes. The walks are from before and after; alignOf returns the alignment of a block,
// given its chunk before.
func Slid(before, after []alloc.Chunk, moves []Move, alignOf func(alloc.Chunk) device.Size) error {
	was := slices.DeleteFunc(slices.Clone(before), func(c alloc.Chunk) bool { return c.State != alloc.Live })
	want := slices.Clone(was)
	for _, m := range moves {
		if i := slices.IndexFunc(want, func(c alloc.Chunk) bool { return c.Addr == m.From.Addr }); i >= 0 {
			want[i].Addr = m.To.Addr
		}
	}
	i := 0
	for k, c := range after {
		if c.State != alloc.Live {
			continue
		}
		if i == len(want) || c != want[i] {
			return violated(IMoved, "after blocks were moved, live chunk %d is %+v", i, c)
		}
		align := alignOf(was[i])
		i++
		if c.Addr%device.Addr(align) != 0 {
			return violated(IMoved, "after blocks were moved, block %v is at no multiple of %d", c.Addr, uint64(align))
		}
		if pinned(c) || k == 0 || after[k-1].State != alloc.Free || after[k-1].Region != c.Region {
			continue
		}
		if hole := after[k-1]; device.AlignUp(hole.Addr, align) < c.Addr {
			return violated(IMoved, "block %v, of multiples of %d, was not moved down into the free chunk %v of %d bytes",
				c.Addr, uint64(align), hole.Addr, uint64(hole.Size))
		}
	}
	if i != len(want) {
		return violated(IMoved, "after blocks were moved, %d are live, not %d", i, len(want))
	}
	return nil
}

// move has an instance move its blocks, before it is closed with them.
func (r *runner) move(m *machine) error {
	return r.judge(m.compact(&r.subject.Promises))
}
