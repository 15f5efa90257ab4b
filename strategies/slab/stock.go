package slab

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

// levels is how many lists a stock has for slabs that are partly used. Eight tell a slab
// that is nearly full from one that is nearly empty, and their heads fit half a cache line.
const levels = 8

// stock is the slabs of one class in one segment that have a free slot. Lists are circles,
// so that the last of a list is the one before its first.
type stock struct {
	head    [levels]int32 // first slab of each level; none
	empty   int32         // first slab without a used slot; none
	empties int32         // how many of those
	some    uint8         // bit i is set if level i has a slab
}

// clear makes the stock an empty one.
func (sh *stock) clear() {
	*sh = stock{empty: none}
	for i := range sh.head {
		sh.head[i] = none
	}
}

// level returns the list that a partial slab with left free slots belongs to. The lowest
// level is tried first: few free slots for the selection "fullest", many for "emptiest", all
// slabs alike for those that go by time or address.
func (a *Cells) level(k *kind, left uint16) uint8 {
	n := uint32(left) - 1
	if a.emptiest {
		n = k.slots - 1 - uint32(left)
	}
	return uint8(min(n*k.scale>>16, levels-1))
}

// filled books that slab n, of which a slot was taken into use, was empty before or is full now.
func (a *Cells) filled(n int32, s *slab, k *kind) {
	sh := &a.stocks[s.stock(len(a.kinds))]
	if uint32(s.left)+1 != k.slots {
		a.unshelve(sh, n, s, k)
		return
	}
	a.unlink(&sh.empty, n)
	sh.empties--
	k.empties--
	a.empties -= k.slab
	a.usable += k.slot * device.Size(k.slots)
	if s.left != 0 {
		a.shelve(sh, n, s, k)
	}
}

// drained books that slab n, to which a slot came back, was full before or is empty now. The
// slab may go back to the parent.
func (a *Cells) drained(n int32, s *slab, k *kind) {
	sh := &a.stocks[s.stock(len(a.kinds))]
	if uint32(s.left) != k.slots {
		a.shelve(sh, n, s, k)
		return
	}
	if s.left != 1 {
		a.unshelve(sh, n, s, k)
	}
	a.usable -= k.slot * device.Size(k.slots)
	a.empties += k.slab
	k.empties++
	if sh.empties >= a.keep && !(planted.Enabled && planted.Is("cells/empty-kept")) {
		a.detach(n)
		return
	}
	a.link(&sh.empty, n, false)
	sh.empties++
}

// shelve enters a slab that has become partly used.
func (a *Cells) shelve(sh *stock, n int32, s *slab, k *kind) {
	k.partial++
	s.level = a.level(k, s.left)
	if a.lowest {
		a.heapPush(sh, n)
		return
	}
	a.link(&sh.head[s.level], n, a.fifo)
	sh.some |= 1 << s.level
}

// unshelve removes a slab that is no longer partly used.
func (a *Cells) unshelve(sh *stock, n int32, s *slab, k *kind) {
	k.partial--
	if a.lowest {
		a.heapRemove(sh, n)
		return
	}
	empty := a.unlink(&sh.head[s.level&(levels-1)], n)
	if !planted.Enabled || !planted.Is("cells/level-left") {
		sh.some &^= empty << (s.level & (levels - 1))
	}
}

// move puts a slab whose number of free slots has changed into the list of its new level.
func (a *Cells) move(n int32, s *slab, level uint8) {
	if planted.Enabled && planted.Is("cells/not-moved") {
		return
	}
	sh := &a.stocks[s.stock(len(a.kinds))]
	sh.some &^= a.unlink(&sh.head[s.level&(levels-1)], n) << (s.level & (levels - 1))
	s.level = level
	a.link(&sh.head[level&(levels-1)], n, false)
	sh.some |= 1 << (level & (levels - 1))
}

// link enters slab n into a circle, in front or at the back. Whether the circle was empty nobody
// can predict, so that there is no branch for it: a circle of one is linked to itself.
func (a *Cells) link(head *int32, n int32, back bool) {
	first := *head
	alone := first >> 31 // all bits if there is no first one, which is negative
	first = first&^alone | n&alone
	last := a.slabs[first].prev&^alone | n&alone
	s := &a.slabs[n]
	s.next, s.prev = first, last
	a.slabs[first].prev = n
	a.slabs[last].next = n
	if !back {
		first = n
	}
	*head = first
}

// unlink removes slab n from a circle, without a branch as link does. It returns one if the
// circle is empty now, else zero.
func (a *Cells) unlink(head *int32, n int32) (empty uint8) {
	s := &a.slabs[n]
	next, prev, first := s.next, s.prev, *head
	a.slabs[prev].next = next
	a.slabs[next].prev = prev
	if first == n {
		first = next
	}
	if next == n {
		first, empty = none, 1
	}
	*head = first
	return empty
}

// heapPush enters a slab into the heap of a stock, by address. The first of the heap is the
// head of level 0, which is where Grab looks.
func (a *Cells) heapPush(sh *stock, n int32) {
	h := &a.heaps[a.slabs[n].stock(len(a.kinds))]
	*h = append(*h, n)
	a.up(*h, int32(len(*h)-1))
	sh.head[0], sh.some = (*h)[0], 1
}

// heapRemove removes a slab from the heap of a stock.
func (a *Cells) heapRemove(sh *stock, n int32) {
	p := &a.heaps[a.slabs[n].stock(len(a.kinds))]
	h := *p
	i, last := a.slabs[n].prev, int32(len(h)-1)
	h[i] = h[last]
	a.slabs[h[i]].prev = i
	h = h[:last]
	*p = h
	if i < last {
		a.down(h, i)
		a.up(h, i)
	}
	if sh.head[0] = none; last > 0 {
		sh.head[0] = h[0]
		return
	}
	sh.some = 0
}

// stock returns the number of the slab's stock.
func (s *slab) stock(classes int) int { return int(s.segment)*classes + int(s.class) }

// up moves the slab at i towards the front of the heap until the one before it is lower.
func (a *Cells) up(h []int32, i int32) {
	n := h[i]
	at := a.slabs[n].base
	if planted.Enabled && planted.Is("cells/heap-unordered") {
		at = ^device.Addr(0)
	}
	for ; i > 0 && a.slabs[h[(i-1)/2]].base > at; i = (i - 1) / 2 {
		h[i] = h[(i-1)/2]
		a.slabs[h[i]].prev = i
	}
	h[i] = n
	a.slabs[n].prev = i
}

// down moves the slab at i away from the front until those behind it are higher.
func (a *Cells) down(h []int32, i int32) {
	n := h[i]
	at := a.slabs[n].base
	for {
		child := 2*i + 1
		if int(child) >= len(h) {
			break
		}
		if int(child)+1 < len(h) && a.slabs[h[child+1]].base < a.slabs[h[child]].base {
			child++
		}
		if a.slabs[h[child]].base > at {
			break
		}
		h[i] = h[child]
		a.slabs[h[i]].prev = i
		i = child
	}
	h[i] = n
	a.slabs[n].prev = i
}

// first returns the slab that serves first, none if none is partly used.
func (sh *stock) first() int32 {
	if sh.some == 0 {
		return none
	}
	return sh.head[bits.TrailingZeros8(sh.some)]
}
