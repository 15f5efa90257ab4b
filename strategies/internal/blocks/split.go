package blocks

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// carveBinary splits block n, which is not free any more, so that its first units are used and the
// rest is free.
func (b *Engine) carveBinary(r *region, n node, units uint32) {
	for at, class := n.at, n.class; units != 1<<(class&31); {
		class--
		if half := uint32(1) << (class & 31); units <= half {
			b.add(r, node{at + half, class})
		} else {
			at, units = at+half, units-half
		}
	}
}

// releaseBinary frees units from unit at on: one block for each bit of their number, the largest
// first. They are freed from the end, so that the tail merges first.
//
// A root starts at a multiple of its size, so a bit leads to the buddy and no root is looked up:
// the would-be buddy of a root is larger than any block there.
func (b *Engine) releaseBinary(r *region, at, units uint32) {
	for end := at + units; units != 0; units &= units - 1 {
		class := bits.TrailingZeros32(units)
		end -= 1 << (class & 31)
		b.mergeBinary(r, end, class)
	}
}

// mergeBinary frees one block and merges it with its buddy while that is free.
func (b *Engine) mergeBinary(r *region, at uint32, class int) {
	for !r.isUpper(class) || b.lists {
		buddy := node{at ^ 1<<(class&31), class}
		if b.count[class] < b.slack || !b.isFree(r, buddy) {
			b.unmerged = b.unmerged || b.count[class] < b.slack
			b.add(r, node{at, class})
			return
		}
		b.remove(r, buddy)
		at &^= 1 << (class & 31)
		class++
	}
	b.mergeUpper(r, r.number(at, class), class)
}

// mergeUpper is mergeBinary by number for a block of the uppermost levels, without the lists. The
// buddy of the whole region would be number 0, which no block has.
func (b *Engine) mergeUpper(r *region, i uint32, class int) {
	for b.count[class] >= b.slack {
		if !b.store.has(&r.upper, i^1) {
			b.addUpper(r, i, class)
			return
		}
		b.lose(r, class, b.store.dropOf(&r.upper, i^1, r.level(class)))
		i >>= 1
		class++
	}
	b.addUpper(r, i, class)
	b.unmerged = true
}

// descend splits block n down to a class and returns the block. Of two parts that serve, the
// smaller is split, of equal ones the left; with high always the right. The other parts become
// free.
func (b *Engine) descend(r *region, n node, class int, high bool) node {
	t := &b.classes
	for n.class > class {
		left := node{n.at, n.class - 1}
		right := node{n.at + t.size[left.class], int(t.right[n.class])}
		if right.class >= class && (high || right.class < left.class) {
			b.add(r, left)
			n = right
		} else {
			b.add(r, right)
			n = left
		}
	}
	return n
}

// carve splits block n, which is no longer free, so that w is used and the rest is free. It returns
// the start, which is the start of the block unless w needs a larger alignment.
func (b *Engine) carve(r *region, n node, w need) uint32 {
	at := device.AlignUp(n.at, w.align)
	b.clip(r, n, at, at+w.units)
	return at
}

// clip splits block n so that the units from first to end are used and the others free.
func (b *Engine) clip(r *region, n node, first, end uint32) {
	t := &b.classes
	for {
		if first == n.at && end == n.at+t.size[n.class] {
			return
		}
		left := node{n.at, n.class - 1}
		right := node{n.at + t.size[left.class], int(t.right[n.class])}
		switch {
		case end <= right.at:
			b.add(r, right)
			n = left
		case first >= right.at:
			b.add(r, left)
			n = right
		default:
			b.clip(r, left, first, right.at)
			n, first = right, right.at
		}
	}
}

// release frees units from unit at on, in the largest blocks that they consist of.
func (b *Engine) release(r *region, at, units uint32) {
	t := &b.classes
	root := t.rootOf(r.units, at)
	var w way
	for end := at + units; at != end; {
		w.to(t, root, at)
		n := node{at, min(t.within(end-at), w.turns[w.n].top)}
		at += t.size[n.class]
		b.merge(r, &w, n)
	}
}

// merge frees the block at the end of the way and merges it with its buddy while that is free.
func (b *Engine) merge(r *region, w *way, n node) {
	for b.count[n.class] >= b.slack {
		buddy, parent, ok := w.up(&b.classes, n)
		if !ok || !b.isFree(r, buddy) {
			b.add(r, n)
			return
		}
		b.remove(r, buddy)
		n = parent
	}
	b.add(r, n)
	b.unmerged = true
}

// coalesce merges all free buddies in O(free blocks), and reports whether there were any.
func (b *Engine) coalesce() (merged bool) {
	if !b.unmerged {
		return false
	}
	b.unmerged = false
	for _, slot := range b.byRank {
		if slot == gone {
			continue
		}
		r := &b.regs[slot]
		// Merging makes blocks of larger classes only, so one pass from the smallest does.
		for class := range b.classes.within(r.units) + 1 {
			merged = b.coalesceClass(r, class) || merged
		}
	}
	return merged
}

func (b *Engine) coalesceClass(r *region, class int) (merged bool) {
	t := &b.classes
	for at := range b.all(r, class) {
		n := node{at, class}
		var w way
		w.to(t, t.rootOf(r.units, n.at), n.at)
		if buddy, parent, ok := w.up(t, n); ok && b.isFree(r, buddy) {
			b.remove(r, n)
			b.remove(r, buddy)
			b.add(r, parent)
			merged = true
		}
	}
	return merged
}
