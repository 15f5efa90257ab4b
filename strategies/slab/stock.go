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

// fewer books that a slot of slab n was taken into use.
func (a *Cells) fewer(n int32, s *slab, k *kind) {
	sh := &a.stocks[s.stock(len(a.kinds))]
	was := s.left
	s.left--
	switch {
	case uint32(was) == k.slots:
		a.unlink(&sh.empty, n)
		sh.empties--
		k.empties--
		a.empties -= k.slab
		a.usable += k.slot * device.Size(k.slots)
		if s.left != 0 {
			a.shelve(sh, n, s, k)
		}
	case s.left == 0:
		a.unshelve(sh, n, s, k)
	default:
		if level := a.level(k, s.left); level != s.level {
			a.move(sh, n, s, level)
		}
	}
}

// more books that a slot of slab n came back. The slab may go back to the parent.
func (a *Cells) more(n int32, s *slab, k *kind) {
	sh := &a.stocks[s.stock(len(a.kinds))]
	was := s.left
	s.left++
	switch {
	case uint32(s.left) == k.slots:
		if was != 0 {
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
	case was == 0:
		a.shelve(sh, n, s, k)
	default:
		if level := a.level(k, s.left); level != s.level {
			a.move(sh, n, s, level)
		}
	}
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
	a.unlink(&sh.head[s.level], n)
	if sh.head[s.level] == none && !(planted.Enabled && planted.Is("cells/level-left")) {
		sh.some &^= 1 << s.level
	}
}

// move puts a slab whose number of free slots has changed into the list of its new level.
func (a *Cells) move(sh *stock, n int32, s *slab, level uint8) {
	if planted.Enabled && planted.Is("cells/not-moved") {
		return
	}
	a.unlink(&sh.head[s.level], n)
	if sh.head[s.level] == none {
		sh.some &^= 1 << s.level
	}
	s.level = level
	a.link(&sh.head[level], n, false)
	sh.some |= 1 << level
}

// link enters slab n into a circle, in front or at the back.
func (a *Cells) link(head *int32, n int32, back bool) {
	s := &a.slabs[n]
	first := *head
	if first == none {
		s.next, s.prev = n, n
		*head = n
		return
	}
	f := &a.slabs[first]
	last := f.prev
	s.next, s.prev = first, last
	f.prev = n
	a.slabs[last].next = n
	if !back {
		*head = n
	}
}

// unlink removes slab n from a circle.
func (a *Cells) unlink(head *int32, n int32) {
	s := &a.slabs[n]
	if s.next == n {
		*head = none
		return
	}
	a.slabs[s.prev].next = s.next
	a.slabs[s.next].prev = s.prev
	if *head == n {
		*head = s.next
	}
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
