package blocks

import (
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/device"
)

// Check verifies every index of the engine in O(free blocks * classes). Its errors name the broken
// invariant; the caller adds its own name.
func (b *Engine) Check() error {
	var free, empty device.Size
	direct := 0
	total := make([]uint32, len(b.classes.size))
	for i := range b.pool.Len() {
		held := b.pool.At(i)
		r := &b.regs[held.Label]
		if !r.held || r.base != held.Addr || r.size != held.Size {
			return fmt.Errorf("invariant H6 (each region has one record): region %v is recorded as %v", held.Addr, r.base)
		}
		if r.direct != 0 {
			direct++
			continue
		}
		n, err := b.checkRegion(r, total)
		if err != nil {
			return fmt.Errorf("%w in region %v", err, r.base)
		}
		free += n
		if r.used == 0 {
			empty += r.size
		}
	}
	if free != b.freed || empty != b.pool.Empty() {
		return fmt.Errorf("invariant H8 (bytes are counted): free %d, counted %d; in empty regions %d, counted %d",
			uint64(free), uint64(b.freed), uint64(empty), uint64(b.pool.Empty()))
	}
	for c, n := range total {
		if n != b.count[c] {
			return fmt.Errorf("invariant H8 (bytes are counted): %d free blocks of class %d, counted %d", n, c, b.count[c])
		}
	}
	if err := b.checkChoice(); err != nil {
		return err
	}
	if err := b.checkPlaces(); err != nil {
		return err
	}
	return b.checkDirect(direct)
}

// checkPlaces verifies the atlas.
func (b *Engine) checkPlaces() error {
	var bytes device.Size // of the regions in the atlas
	for e := range b.where.All {
		place := uint64(e.Label) - 1
		r := &b.regs[slotOf(place)]
		first, last := max(e.Addr<<coarse, r.base), min((e.Addr.Add(e.Size)-1)<<coarse|(1<<coarse-1), r.base.Add(r.found()-1))
		if !r.held || first > last || IsDirect(place) != (r.direct != 0) {
			return fmt.Errorf("invariant H12 (addresses lead to their region): %v leads to region %v", e.Addr<<coarse, r.base)
		}
		bytes += last.Sub(first) + 1
	}
	for i := range b.regs {
		if r := &b.regs[i]; r.held {
			bytes -= r.found()
		}
	}
	if bytes != 0 {
		return fmt.Errorf("invariant H12 (addresses lead to their region): %d bytes too many lead to one", int64(bytes))
	}
	return nil
}

// checkRegion verifies the free blocks of one region, counts them in total by class, and returns
// their bytes.
func (b *Engine) checkRegion(r *region, total []uint32) (device.Size, error) {
	t := &b.classes
	var free, end uint32
	if want := min(r.size>>b.shift, b.most); device.Size(r.units) != want {
		return 0, fmt.Errorf("invariant H11 (a region is cut to its last block): %d units, want %d", r.units, uint64(want))
	}
	// The checks below search free blocks by their bits only.
	if !b.store.sound(&r.upper) {
		return 0, errors.New("invariant H5 (summaries match the free blocks): the uppermost levels have words that their " +
			"summary lacks")
	}
	for c := range t.within(r.units) + 1 {
		n := b.len(r, c)
		if noted := r.has[c>>6]>>(c&63)&1 != 0; n != 0 != noted || noted && !b.store.has(&b.ranked[c], b.key(r)) {
			return 0, fmt.Errorf("invariant H5 (summaries match the free blocks): %d free blocks of class %d are missing", n, c)
		}
		if c < len(r.sets) && !b.store.sound(&r.sets[c]) {
			return 0, fmt.Errorf("invariant H5 (summaries match the free blocks): class %d has words that its summary "+
				"lacks", c)
		}
	}
	found := make([]int, len(t.size))
	next := b.heads(r)
	for n, ok := next.from(b, r, 0); ok; n, ok = next.from(b, r, n.at+1) {
		if n.at < end {
			return 0, fmt.Errorf("invariant H3 (free blocks are disjoint): block of class %d at unit %d, the one below "+
				"ends at %d", n.class, n.at, end)
		}
		if err := b.checkNode(r, n); err != nil {
			return 0, err
		}
		end = n.at + t.size[n.class]
		free += t.size[n.class]
		found[n.class]++
		total[n.class]++
	}
	if free+r.used != r.units {
		return 0, fmt.Errorf("invariant H3 (free blocks are disjoint): %d units free, %d used, of %d", free, r.used, r.units)
	}
	for c := range t.within(r.units) + 1 {
		if n := b.len(r, c); n != found[c] {
			return 0, fmt.Errorf("invariant H5 (summaries match the free blocks): %d free blocks of class %d, counted %d",
				found[c], c, n)
		}
		if b.lists {
			if err := b.checkList(r, c, found[c]); err != nil {
				return 0, err
			}
		}
	}
	return device.Size(free) << b.shift, nil
}

// checkNode verifies one free block against the split tree of its root.
func (b *Engine) checkNode(r *region, n node) error {
	t := &b.classes
	root := t.rootOf(r.units, n.at)
	var w way
	at := root
	for at.at != n.at { // like way.to, which relies on the property that is checked here
		left := t.within(n.at - at.at)
		if left >= at.class {
			return fmt.Errorf("invariant H2 (a free block is in its split tree): class %d at unit %d", n.class, n.at)
		}
		at = node{at.at + t.size[left], int(t.right[left+1])}
	}
	if n.class > at.class {
		return fmt.Errorf("invariant H2 (a free block is in its split tree): class %d at unit %d", n.class, n.at)
	}
	w.to(t, root, n.at)
	if buddy, _, ok := w.up(t, n); ok && b.isFree(r, buddy) && !b.unmerged {
		return fmt.Errorf("invariant H4 (free buddies are merged): class %d at unit %d and class %d at %d", n.class, n.at,
			buddy.class, buddy.at)
	}
	return nil
}

func (b *Engine) checkList(r *region, class, n int) error {
	o := &b.listed[r.slot]
	l, newer := o.lists[class], uint32(0)
	for at := l.newest; at != 0; newer, at = at, o.links[at-1].older {
		if n--; n < 0 || o.links[at-1].newer != newer || !b.isFree(r, node{at - 1, class}) {
			return fmt.Errorf("invariant H7 (lists hold what is free): class %d, unit %d", class, at-1)
		}
	}
	if n != 0 || l.oldest != newer {
		return fmt.Errorf("invariant H7 (lists hold what is free): class %d, %d blocks are in no list", class, n)
	}
	return nil
}

// checkChoice verifies the order of choice and the sets of regions.
func (b *Engine) checkChoice() error {
	var some mask
	held := 0
	last := gone
	noted := make([]int, len(b.ranked))
	for rank, slot := range b.byRank {
		if slot == gone {
			continue
		}
		held++
		r := &b.regs[slot]
		if !r.held || r.direct != 0 || r.rank != uint32(rank) || r.rank >= b.stride ||
			b.choice == Lowest && last != gone && b.regs[last].base > r.base ||
			b.choice != Lowest && last != gone && b.regs[last].age > r.age {
			return fmt.Errorf("invariant H6 (each region has one record): region %v of rank %d is at %d", r.base, r.rank, rank)
		}
		if b.fullest && r.bucket != bucketOf(r) {
			return fmt.Errorf("invariant H6 (each region has one record): region %v in bucket %d, of which %d of %d "+
				"units are used", r.base, r.bucket, r.used, r.units)
		}
		last = slot
		for c := range r.has.all {
			some[c>>6] |= 1 << (c & 63)
			noted[c]++
		}
	}
	for c := range b.ranked {
		if n := b.store.len(&b.ranked[c]); n != noted[c] || !b.store.sound(&b.ranked[c]) {
			return fmt.Errorf("invariant H5 (summaries match the free blocks): %d regions have class %d, the summary has %d",
				noted[c], c, n)
		}
	}
	if some != b.some {
		return fmt.Errorf("invariant H5 (summaries match the free blocks): classes %x, the summary has %x", some, b.some)
	}
	for _, r := range b.regs {
		if r.held && r.direct == 0 {
			held--
		}
	}
	if held != 0 {
		return fmt.Errorf("invariant H6 (each region has one record): %d ranks too many", held)
	}
	return nil
}

// checkDirect verifies the direct regions, of which there are n.
func (b *Engine) checkDirect(n int) error {
	var cache, lent device.Size
	free := 0
	for i := range b.regs {
		if r := &b.regs[i]; r.direct != 0 {
			n--
			if r.free {
				free++
			} else {
				lent += r.direct
			}
		}
	}
	for i, slot := range b.kept {
		r := &b.regs[slot]
		cache += r.direct
		if r.direct == 0 || !r.free || b.keptAt(r.direct, r.age) != i {
			return fmt.Errorf("invariant H10 (direct regions without a live block are kept by size): region %v", r.base)
		}
	}
	if lent != b.lent {
		return fmt.Errorf("invariant H8 (bytes are counted): %d in direct regions live, counted %d", uint64(lent),
			uint64(b.lent))
	}
	if n != 0 || free != len(b.kept) || cache != b.cache {
		return fmt.Errorf("invariant H10 (direct regions without a live block are kept by size): %d of %d bytes, "+
			"counted %d of %d",
			free, uint64(cache), len(b.kept), uint64(b.cache))
	}
	return nil
}
