package streampool

import "github.com/vramyard/vramyard/device"

// use is the index of a useRow.
type use = uint32

// noUse ends a list.
const noUse use = 0

// useRow records that a stream, other than the stream of the free, uses a block. The rows of a live
// block are linked in a list. The rows of a pending block are in the queues of their streams, each
// with a mark.
type useRow struct {
	group uint32
	chunk Handle // pending
	mark  markID // pending
	next  use
}

// uses holds the rows.
type uses struct {
	rows  []useRow // rows[0] is unused
	spare use
}

func newUses() uses { return uses{rows: make([]useRow, 1)} }

func (u *uses) add(g uint32, next use) use {
	i := u.spare
	if i == noUse {
		i = use(len(u.rows))
		u.rows = append(u.rows, useRow{})
	} else {
		u.spare = u.rows[i].next
	}
	u.rows[i] = useRow{group: g, next: next}
	return i
}

func (u *uses) remove(i use) {
	u.rows[i] = useRow{next: u.spare}
	u.spare = i
}

// Use records that work on a stream uses a live block. The stream of the free needs no record. It
// costs O(streams recorded for the block).
func (p *Pool) Use(h Handle, s device.Stream) {
	g := p.groupOf(s)
	for i := p.rows[h].uses; i != noUse; i = p.uses.rows[i].next {
		if p.uses.rows[i].group == g {
			return
		}
	}
	p.rows[h].uses = p.uses.add(g, p.rows[h].uses)
}

func (p *Pool) forgetUses(h Handle) {
	for i := p.rows[h].uses; i != noUse; {
		next := p.uses.rows[i].next
		p.uses.remove(i)
		i = next
	}
	p.rows[h].uses = 0
}

// recordWaits records a mark on each stream, other than that of its group, which uses a block that
// is being freed. It reports whether there are any.
func (p *Pool) recordWaits(h Handle) bool {
	n := uint32(0)
	for i := p.rows[h].uses; i != noUse; {
		u := &p.uses.rows[i]
		next, g := u.next, u.group
		if g == p.rows[h].group {
			p.uses.remove(i)
			i = next
			continue
		}
		u.chunk, u.next, u.mark = h, noUse, p.newMark(g)
		if q := &p.groups[g]; q.lastUse != noUse {
			p.uses.rows[q.lastUse].next = i
			q.lastUse = i
		} else {
			q.firstUse, q.lastUse = i, i
			p.busy.Add(g)
		}
		n++
		i = next
	}
	p.rows[h].uses = n
	return n > 0
}

// retireUse removes the first use from the queue of a stream, whose mark is done. It returns the
// bytes that are no longer pending.
func (p *Pool) retireUse(of uint32) (bytes device.Size) {
	g := &p.groups[of]
	i := g.firstUse
	u := p.uses.rows[i]
	if g.firstUse = u.next; u.next == noUse {
		g.lastUse = noUse
		p.updateBusy(of)
	}
	p.marks.drop(u.mark)
	p.uses.remove(i)
	w := &p.rows[u.chunk]
	if w.uses--; w.uses > 0 {
		return 0
	}
	bytes = w.size
	p.stats.Pending -= bytes
	p.freeOwned(u.chunk)
	return bytes
}
