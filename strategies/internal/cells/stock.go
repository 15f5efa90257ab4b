package cells

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// levels is the number of lists of partly used slabs in a stock. Eight separate nearly full from
// nearly empty slabs, and their heads fit half a cache line.
const levels = 8

// The levels of slabs that are not partly used.
const (
	levelEmpty = levels     // without a used slot; served after all that have some
	levelFull  = levels + 1 // without a free slot; such a slab is a circle of its own, and in no list
)

// stock holds the slabs with a free slot of one class in one segment, in circular lists.
type stock struct {
	head    [levels + 2]int32 // first slab of each level, or none; always none for levelFull
	empties int32             // number of slabs without a used slot
	some    uint16            // bit i is set if level i has a slab
}

func (sh *stock) clear() {
	*sh = stock{}
	for i := range sh.head {
		sh.head[i] = None
	}
}

// level returns the list of a slab with left free slots. The lowest level is tried first: few free
// slots with selection "fullest", many with "emptiest". Other selections have one level.
func (k *kind) level(left uint32) uint32 {
	level := (left*k.step + k.bias) >> 16
	if left == k.slots {
		level = levelEmpty
	}
	if left == 0 {
		level = levelFull
	}
	return level
}

// becameUsed counts slab n, which was empty, as used.
func (a *Engine) becameUsed(n int32, s *slab, k *kind) {
	a.stocks[a.stockOf(n, s)].empties--
	k.empties--
	a.empties -= k.slab
	a.usable += k.slot * device.Size(k.slots)
}

// becameEmpty counts slab n as empty, and reports whether it is to be returned to the parent.
func (a *Engine) becameEmpty(n int32, s *slab, k *kind) (surplus bool) {
	sh := &a.stocks[a.stockOf(n, s)]
	a.usable -= k.slot * device.Size(k.slots)
	a.empties += k.slab
	k.empties++
	if sh.empties >= a.keep {
		return true
	}
	sh.empties++
	return false
}

// move puts a slab into the list of its new level. A full one is linked to itself, so that becoming
// full takes no branch.
func (a *Engine) move(n int32, s *slab, k *kind, before, level uint32) {
	k.partial += int32(before/levels) - int32(level/levels)
	sh := &a.stocks[a.stockOf(n, s)]
	if a.lowest {
		a.moveInHeap(sh, n, before, level)
		return
	}
	some := sh.some &^ (leave(a.slabs, &sh.head[before], n, s) << (before & 15))
	enrol(a.slabs, &sh.head[level], n, s, a.fifo)
	sh.head[levelFull] = None
	sh.some = (some | 1<<(level&15)) &^ (1 << levelFull)
}

func (a *Engine) take(sh *stock, n int32, level uint32) {
	sh.some &^= leave(a.slabs, &sh.head[level], n, &a.slabs[n]) << (level & 15)
}

// enter inserts slab n into the list of a level, in front or at the back.
func (a *Engine) enter(sh *stock, n int32, level uint32, back bool) {
	enrol(a.slabs, &sh.head[level], n, &a.slabs[n], back)
	sh.some |= 1 << (level & 15)
}

// enrol inserts slab n with record s into a circular list, in front or at the back. Branch-free:
// emptiness is unpredictable, so a single slab is linked to itself.
func enrol(slabs []slab, head *int32, n int32, s *slab, back bool) {
	first := *head
	alone := first >> 31 // all ones if the list is empty, because none is negative
	first = first&^alone | n&alone
	at := &slabs[first]
	last := at.prev&^alone | n&alone
	s.next, s.prev = first, last
	at.prev = n
	slabs[last].next = n
	if !back {
		first = n
	}
	*head = first
}

// leave removes slab n with record s from a circular list. It returns 1 if the list is empty now,
// otherwise 0. Branch-free.
func leave(slabs []slab, head *int32, n int32, s *slab) (empty uint16) {
	next, prev, first := s.next, s.prev, *head
	slabs[prev].next = next
	slabs[next].prev = prev
	if first == n {
		first = next
	}
	if next == n {
		first, empty = None, 1
	}
	*head = first
	return empty
}

// moveInHeap is move with a heap instead of lists. All partly used slabs have level 0.
func (a *Engine) moveInHeap(sh *stock, n int32, before, level uint32) {
	switch before {
	case 0:
		a.heapRemove(sh, n)
	case levelEmpty:
		a.take(sh, n, levelEmpty)
	}
	switch level {
	case 0:
		a.heapPush(sh, n)
	case levelEmpty:
		a.enter(sh, n, levelEmpty, false)
	}
}

// heapPush puts a slab into the heap of a stock. The first one is the head of level 0.
func (a *Engine) heapPush(sh *stock, n int32) {
	h := &a.heaps[a.stockOf(n, &a.slabs[n])]
	*h = append(*h, n)
	a.up(*h, int32(len(*h)-1))
	sh.head[0] = (*h)[0]
	sh.some |= 1
}

func (a *Engine) heapRemove(sh *stock, n int32) {
	p := &a.heaps[a.stockOf(n, &a.slabs[n])]
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
	if sh.head[0] = None; last > 0 {
		sh.head[0] = h[0]
		return
	}
	sh.some &^= 1
}

func (a *Engine) stockOf(n int32, s *slab) int {
	if a.segments == 1 {
		return int(s.class)
	}
	return int(a.backs[n].segment)*len(a.kinds) + int(s.class)
}

// up moves the slab at i up the heap until its parent has a lower address.
func (a *Engine) up(h []int32, i int32) {
	n := h[i]
	at := a.slabs[n].base
	for ; i > 0 && a.slabs[h[(i-1)/2]].base > at; i = (i - 1) / 2 {
		h[i] = h[(i-1)/2]
		a.slabs[h[i]].prev = i
	}
	h[i] = n
	a.slabs[n].prev = i
}

// down moves the slab at i down the heap until its children have higher addresses.
func (a *Engine) down(h []int32, i int32) {
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

// first returns the slab that serves first, or none if no slab has a free slot. Partly used slabs
// come first.
func (sh *stock) first() int32 {
	if sh.some == 0 {
		return None
	}
	return sh.head[bits.TrailingZeros16(sh.some)]
}
