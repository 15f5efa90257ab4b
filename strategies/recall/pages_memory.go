package recall

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/regions"
)

// kind is the use of a window.
type kind uint8

const (
	home  kind = iota // each handle has a slot in one home window
	alias             // a second mapping of handles that were free together
)

// The bounds of windows. Address space costs nothing, so a window has far more than it maps at
// first.
const (
	windowPages = 1 << 19 // of address space: 1 TiB with pages of 2 MiB
	mostWindows = 64
	mostAliased = 2 // times the bytes held, of alias windows together
)

// slot is the mapping of a handle in a window.
type slot struct {
	addr   device.Addr
	size   device.Size
	handle int32  // gap once it was unmapped
	users  int32  // live chunks that overlap it
	chunk  uint32 // the one with its first byte
}

// gap is the row of no handle: of a slot without memory.
const gap int32 = -1

// window is a range of addresses. Memory is mapped at its end, slot after slot.
type window struct {
	addr   device.Addr
	size   device.Size // 0 for an unused row
	end    device.Size // bytes of the slots
	gone   device.Size // bytes of the gaps among them
	mapped device.Size // end, and the bytes of broken
	broken []int32     // handles mapped behind end that are not accessible
	kind   kind
	head   uint32 // first chunk
	tail   uint32 // last chunk
	used   uint32 // allocations before the last grant from it
	slots  []slot
	slotOf []int32 // by page
}

// place names a slot.
type place struct{ window, slot int32 }

// nowhere is the owner of memory that is not in use.
var nowhere = place{-1, -1}

// handle is a piece of physical memory.
type handle struct {
	id     device.Handle // 0 for an unused row
	size   device.Size
	in     []place // slots that map it; the first is in a home window
	owner  place   // the slot through which it is in use
	spoilt int32   // mappings in broken parts of windows
}

// reveal counts n bytes that were mapped in a home window, where a walk shows them.
func (a *pages) reveal(n device.Size) {
	a.front.Stats.Reserved += n
	a.front.Stats.Forgotten -= n
}

// hide counts n bytes that are held, and mapped in no home window any more.
func (a *pages) hide(n device.Size) {
	a.front.Stats.Reserved -= n
	a.front.Stats.Forgotten += n
}

// stuck returns the bytes shown as slack.
func (a *pages) stuck() (n device.Size) {
	for i := range a.windows {
		if w := &a.windows[i]; w.kind == home {
			n += w.mapped - w.end
		}
	}
	return n
}

// open reserves another window with room for least bytes and returns its row. If the table is full,
// the alias window that was used least recently is released first.
func (a *pages) open(k kind, least device.Size) (int32, error) {
	if len(a.order) == mostWindows && !a.evict() {
		return 0, regions.ErrTooMany
	}
	r, err := a.vm.ReserveRange(max(least, windowPages*a.cfg.PageBytes), a.cfg.PageBytes, 0)
	if err != nil && least < windowPages*a.cfg.PageBytes {
		r, err = a.vm.ReserveRange(least, a.cfg.PageBytes, 0)
	}
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(a.windows, func(w window) bool { return w.size == 0 })
	if i < 0 {
		i = len(a.windows)
		a.windows = append(a.windows, window{})
	}
	w := &a.windows[i]
	*w = window{addr: r.Addr, size: r.Size, kind: k, slots: w.slots[:0], slotOf: w.slotOf[:0], broken: w.broken[:0]}
	at, _ := slices.BinarySearchFunc(a.order, r.Addr, func(j int32, addr device.Addr) int {
		return cmp.Compare(a.windows[j].addr, addr)
	})
	a.order = slices.Insert(a.order, at, int32(i))
	a.front.Stats.Regions++
	return int32(i), nil
}

// close releases the range of a window in which nothing is mapped.
func (a *pages) close(i int32) error {
	w := &a.windows[i]
	if err := a.vm.ReleaseRange(w.addr); err != nil {
		return err
	}
	a.order = slices.DeleteFunc(a.order, func(j int32) bool { return j == i })
	w.size = 0
	a.front.Stats.Regions--
	return nil
}

// evict releases the alias window without a live block that was used least recently, and reports
// whether the device released a window.
func (a *pages) evict() bool {
	if a.pinned {
		return false
	}
	victim, age := int32(-1), uint32(0)
	for _, i := range a.order {
		w := &a.windows[i]
		busy := slices.ContainsFunc(w.slots, func(s slot) bool { return s.users > 0 })
		if w.kind == alias && !busy && a.watch.count-w.used >= age {
			victim, age = i, a.watch.count-w.used
		}
	}
	if victim < 0 || a.mend(victim) != nil {
		return false
	}
	w := &a.windows[victim]
	if w.end > 0 && !slices.ContainsFunc(w.slots, func(s slot) bool { return s.handle == gap }) {
		if a.vm.Unmap(w.addr, w.end) != nil {
			return false
		}
		for len(w.slots) > 0 {
			a.drop(place{victim, int32(len(w.slots) - 1)})
		}
	}
	for len(w.slots) > 0 { // the last slot is never a gap, because retract removes it
		if a.detach(place{victim, int32(len(w.slots) - 1)}) != nil {
			return false
		}
	}
	return a.close(victim) == nil
}

// curb releases alias windows until n more bytes of aliases are within their bound, as far as the
// windows are without live blocks.
func (a *pages) curb(n device.Size) {
	for a.aliased+n > mostAliased*a.held && a.evict() {
	}
}

// mend unmaps the broken part of a window.
func (a *pages) mend(i int32) error {
	w := &a.windows[i]
	if w.mapped == w.end {
		return nil
	}
	if err := a.vm.Unmap(w.addr.Add(w.end), w.mapped-w.end); err != nil {
		return err
	}
	if w.kind == home {
		a.hide(w.mapped - w.end)
	}
	for _, j := range w.broken {
		a.handles[j].spoilt--
	}
	w.mapped, w.broken = w.end, w.broken[:0]
	return nil
}

// attach maps idle handles at the end of a window, where they become a free chunk. If the device
// refuses, they are unmapped again; if it refuses that too, it is retried before the next use of
// the window.
func (a *pages) attach(i int32, all []int32) error {
	err := a.mend(i)
	w := &a.windows[i]
	for _, j := range all {
		m := &a.handles[j]
		if err == nil {
			err = a.vm.Map(w.addr.Add(w.mapped), m.size, m.id, 0)
		}
		if err != nil {
			break
		}
		w.mapped += m.size
		w.broken = append(w.broken, j)
		m.spoilt++
		if w.kind == home {
			a.reveal(m.size)
		}
	}
	if err == nil {
		err = a.vm.SetAccess(w.addr.Add(w.end), w.mapped-w.end, device.AccessReadWrite)
	}
	if err != nil {
		_ = a.mend(i) // the error that matters is the first
		return err
	}
	h := a.addChunk(chunk{addr: w.addr.Add(w.end), size: w.mapped - w.end, window: i})
	for _, j := range w.broken {
		m := &a.handles[j]
		m.spoilt--
		m.in = append(m.in, place{i, int32(len(w.slots))})
		for range m.size >> a.shift {
			w.slotOf = append(w.slotOf, int32(len(w.slots)))
		}
		w.slots = append(w.slots, slot{addr: w.addr.Add(w.end), size: m.size, handle: j, chunk: h})
		w.end += m.size
		if w.kind == alias {
			a.aliased += m.size
		}
	}
	w.broken = w.broken[:0]
	a.link(i, w.tail, h)
	a.link(i, h, noChunk)
	a.settle(h)
	return nil
}

// detach unmaps a slot through which its memory is not in use.
func (a *pages) detach(p place) error {
	w := &a.windows[p.window]
	s := &w.slots[p.slot]
	if err := a.vm.Unmap(s.addr, s.size); err != nil {
		return err
	}
	a.drop(p)
	return nil
}

// drop makes a slot that was unmapped a gap.
func (a *pages) drop(p place) {
	w := &a.windows[p.window]
	s := &w.slots[p.slot]
	h := s.chunk
	if a.chunks[h].state == free {
		h = a.cut(h, s.addr, s.size)
	}
	a.chunks[h].state = gone
	if next := a.chunks[h].next; next != noChunk && a.chunks[next].state == gone {
		h = a.join(h, next)
	}
	if prev := a.chunks[h].prev; prev != noChunk && a.chunks[prev].state == gone {
		a.join(prev, h)
	}
	m := &a.handles[s.handle]
	m.in = slices.DeleteFunc(m.in, func(q place) bool { return q == p })
	if w.kind == home {
		a.hide(s.size)
	} else {
		a.aliased -= s.size
	}
	s.handle = gap
	w.gone += s.size
	if w.mapped == w.end {
		a.retract(p.window)
	}
}

// retract removes gaps from the end of a window, so that its addresses are used again.
func (a *pages) retract(i int32) {
	w := &a.windows[i]
	for n := len(w.slots); n > 0 && w.slots[n-1].handle == gap; n = len(w.slots) {
		s := w.slots[n-1]
		w.slots = w.slots[:n-1]
		w.end -= s.size
		w.gone -= s.size
		w.slotOf = w.slotOf[:w.end>>a.shift]
		c := &a.chunks[w.tail]
		if c.size -= s.size; c.size == 0 {
			h, prev := w.tail, c.prev
			a.link(i, prev, noChunk)
			a.dropChunk(h)
		}
	}
	w.mapped = w.end
}

// idle reports whether memory is accessible and not in use.
func (m *handle) idle() bool { return len(m.in) > 0 && m.owner == nowhere && m.spoilt == 0 }

// loose reports whether memory is mapped nowhere.
func (m *handle) loose() bool { return m.id != 0 && len(m.in) == 0 && m.spoilt == 0 }

// trim releases the memory that is not in use and the windows without any. It returns the first
// error.
func (a *pages) trim() (first error) {
	for _, i := range a.order {
		first = cmp.Or(first, a.mend(i))
		if w := &a.windows[i]; w.mapped == w.end {
			a.retract(i)
		}
	}
	for j := range a.handles {
		m := &a.handles[j]
		if !m.idle() && !m.loose() {
			continue
		}
		var err error
		for err == nil && len(m.in) > 0 { // the mapping of the home window is the first of the list
			err = a.detach(m.in[len(m.in)-1])
		}
		if err == nil {
			err = a.discard(int32(j))
		}
		first = cmp.Or(first, err)
	}
	for _, i := range slices.Clone(a.order) {
		if a.windows[i].mapped == 0 {
			first = cmp.Or(first, a.close(i))
		}
	}
	return first
}

// discard releases a loose handle.
func (a *pages) discard(j int32) error {
	m := &a.handles[j]
	if err := a.vm.ReleaseHandle(m.id); err != nil {
		return err
	}
	a.held -= m.size
	a.front.Stats.Forgotten -= m.size
	a.front.Stats.Releases++
	*m = handle{in: m.in[:0], owner: nowhere}
	a.spare = append(a.spare, j)
	return nil
}
