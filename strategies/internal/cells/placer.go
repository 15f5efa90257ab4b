package cells

import (
	"slices"

	"github.com/vramyard/vramyard/device"
)

// FreeNeighbours returns the free bytes of the slab below and above a live slot that would form one
// free chunk with it if it were returned now. It also returns the slab if that would be returned to
// the parent, else None. For a slot that would go to a magazine there are no such bytes.
func (a *Engine) FreeNeighbours(p device.Addr) (below, above device.Size, gone int32) {
	c, ok := a.liveSlot(p)
	if !ok || a.cached.rounds != 0 || !a.leavesNone(comingBack{c.slab, 1}) {
		return 0, 0, None
	}
	s := &a.slabs[c.slab]
	k := &a.kinds[s.class]
	gone = None
	if a.stocks[a.stockOf(c.slab, s)].empties >= a.keep {
		gone = c.slab
	}
	below = device.Size(c.slot) * k.slot
	return below, k.slab - k.slot - below, gone
}

// CanGrab reports whether a slot of a class would be available without the parent after the slots
// at some addresses were returned: a slot of the class is free or returned, or a slab of a class
// that serves is or becomes empty. It is false if there are segments that do not steal. It costs
// O(addresses) and allocates.
func (a *Engine) CanGrab(class int, freed []device.Addr, serves func(class int) bool) bool {
	if a.segments > 1 && !a.steal {
		return false
	}
	for i := range a.kinds {
		if k := &a.kinds[i]; i == class && k.partial > 0 || k.empties > 0 && serves(i) {
			return true
		}
	}
	returned, _ := a.slotsOf(freed)
	return slices.ContainsFunc(returned, func(r comingBack) bool {
		own := int(a.slabs[r.slab].class)
		return own == class || a.leavesNone(r) && serves(own)
	})
}

// Emptied returns the slabs that would have no used slot after the slots at some addresses were
// returned, and the addresses at which no live slot starts. Such slabs are returned to the parent
// before a request fails. It costs O(stocks + empty slabs + addresses log addresses).
func (a *Engine) Emptied(freed []device.Addr) (slabs []int32, rest []device.Addr) {
	returned, rest := a.slotsOf(freed)
	for i := range a.stocks {
		a.circle(a.stocks[i].head[levelEmpty], levelEmpty, func(n int32, _ uint32) bool {
			slabs = append(slabs, n)
			return true
		})
	}
	for _, r := range returned {
		if a.leavesNone(r) {
			slabs = append(slabs, r.slab)
		}
	}
	return slabs, rest
}

// comingBack is the number of slots of a slab that would be returned.
type comingBack struct {
	slab  int32
	slots uint32
}

// leavesNone reports whether the slab would have no used slot then. Slots in magazines are used.
func (a *Engine) leavesNone(r comingBack) bool {
	s := &a.slabs[r.slab]
	return uint32(s.left)+r.slots == a.kinds[s.class].slots
}

// slotsOf counts the live slots at the addresses by slab, and returns the other addresses.
func (a *Engine) slotsOf(at []device.Addr) (slots []comingBack, rest []device.Addr) {
	at = slices.Clone(at)
	slices.Sort(at) // groups the slots of a slab
	for _, p := range slices.Compact(at) {
		c, ok := a.liveSlot(p)
		switch n := len(slots); {
		case !ok:
			rest = append(rest, p)
		case n > 0 && slots[n-1].slab == c.slab:
			slots[n-1].slots++
		default:
			slots = append(slots, comingBack{c.slab, 1})
		}
	}
	return slots, rest
}

func (a *Engine) liveSlot(p device.Addr) (cell, bool) {
	n := uint64(a.where.Get(p)) - 1
	if n >= uint64(len(a.slabs)) {
		return cell{}, false
	}
	s := &a.slabs[n]
	slot := a.kinds[s.class].slotAt(s, p)
	c := cell{int32(n), uint32(slot)}
	if slot >= uint64(a.kinds[s.class].slots) || a.isFree(c) || *a.slackOf(c.slab, c.slot) == slackCached {
		return cell{}, false
	}
	return c, true
}
