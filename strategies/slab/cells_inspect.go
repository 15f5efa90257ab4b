package slab

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/ledger"
)

// FreeBytes returns the bytes in free slots and in slabs without a used one. O(1).
func (a *Cells) FreeBytes() device.Size { return a.usable - a.used + a.empties }

// CachedBytes returns the bytes of the slots in magazines. O(1).
func (a *Cells) CachedBytes() device.Size { return a.cached.bytes }

// Slabs returns how many slabs are held. O(1).
func (a *Cells) Slabs() int { return a.taken }

// LargestFree returns the size of the largest free chunk: a free slot, or a slab without a
// used one. O(classes).
func (a *Cells) LargestFree() (largest device.Size) {
	for i := len(a.kinds) - 1; i >= 0; i-- {
		k := &a.kinds[i]
		if k.partial > 0 {
			largest = max(largest, k.slot)
		}
		if k.empties > 0 {
			largest = max(largest, k.slab)
		}
	}
	return largest
}

// Host memory of the records, in bytes.
const (
	kindBytes  = 56
	stockBytes = 44
	slabBytes  = 40
	rackBytes  = 16
	depotBytes = 12
	cellBytes  = 16
)

// Bytes returns the host memory of the cells, unused capacity included. It costs
// O(segments * classes) with the selection of the lowest address, else O(1).
func (a *Cells) Bytes() device.Size {
	n := cap(a.kinds)*kindBytes + cap(a.stocks)*stockBytes + cap(a.slabs)*slabBytes + cap(a.classOf)*2 + cap(a.words)*8
	for _, h := range a.heaps {
		n += 24 + cap(h)*4
	}
	m := &a.cached
	n += cap(m.racks)*rackBytes + cap(m.depots)*depotBytes + cap(m.cells)*cellBytes + cap(m.next)*4
	return device.Size(n)
}

// Piece returns the memory of a slab that is held.
func (a *Cells) Piece(slab int32) Piece { return Piece{a.slabs[slab].base, a.slabs[slab].handle} }

// ClassOfSlab returns the class of a slab that is held.
func (a *Cells) ClassOfSlab(slab int32) int { return int(a.slabs[slab].class) }

// SlabOf returns the slab that a place lies in.
func SlabOf(place uint64) int32 { return int32(place) }

// WalkSlab yields the chunks of a slab in the order of their addresses, and reports whether
// the walk goes on: each slot as a chunk, and what is left behind the last as slack; or, if
// no slot is in use, the whole slab as one free chunk without a class, for it can still
// become a slab of any. A slot in use that live does not have is in a magazine.
//
// Precondition: the slab is held.
func (a *Cells) WalkSlab(slab int32, region device.Addr, live *ledger.Table, yield func(alloc.Chunk) bool) bool {
	s := &a.slabs[slab]
	k := &a.kinds[s.class]
	if uint32(s.left) == k.slots {
		return yield(alloc.Chunk{Region: region, Addr: s.base, Size: k.slab, Class: alloc.NoClass})
	}
	for slot := range k.slots {
		c := a.chunkOf(s, slot, region)
		if !a.isFree(s, slot) {
			c.State = alloc.Cached
			if b, ok := live.Get(c.Addr); ok {
				c.State, c.Requested, c.Stream, c.Tag = alloc.Live, b.Requested, b.Stream, b.Tag
			}
		}
		if !yield(c) {
			return false
		}
	}
	if used := k.slot * device.Size(k.slots); used != k.slab {
		return yield(alloc.Chunk{
			Region: region, Addr: s.base.Add(used), Size: k.slab - used, State: alloc.Slack, Class: alloc.NoClass,
		})
	}
	return true
}

// chunkOf returns a slot as a free chunk.
func (a *Cells) chunkOf(s *slab, slot uint32, region device.Addr) alloc.Chunk {
	size := a.kinds[s.class].slot
	return alloc.Chunk{Region: region, Addr: s.base.Add(device.Size(slot) * size), Size: size, Class: int32(s.class)}
}

// isFree reports whether a slot is free.
func (a *Cells) isFree(s *slab, slot uint32) bool {
	if a.kinds[s.class].wide {
		return a.words[s.words+slot>>6]>>(slot&63)&1 != 0
	}
	return s.free>>slot&1 != 0
}

// WalkFree yields the free chunks of the slabs in search order: segment by segment and in
// each class by class, slots before slabs without a used one. RegionOf tells the region
// that the piece of a slab lies in. It reports whether the walk goes on.
func (a *Cells) WalkFree(regionOf func(Piece) device.Addr, yield func(alloc.Chunk) bool) bool {
	for i := range a.stocks {
		for n := range a.slabsInOrder(i) {
			s := &a.slabs[n]
			region, k := regionOf(Piece{s.base, s.handle}), &a.kinds[s.class]
			if uint32(s.left) == k.slots {
				if !yield(alloc.Chunk{Region: region, Addr: s.base, Size: k.slab, Class: alloc.NoClass}) {
					return false
				}
				continue
			}
			for slot := range k.slots {
				if a.isFree(s, slot) && !yield(a.chunkOf(s, slot, region)) {
					return false
				}
			}
		}
	}
	return true
}

// slabsInOrder yields the slabs of a stock in the order in which they serve.
func (a *Cells) slabsInOrder(stock int) func(func(int32) bool) {
	return func(yield func(int32) bool) {
		sh := &a.stocks[stock]
		if a.lowest {
			sorted := slices.Clone(a.heaps[stock])
			slices.SortFunc(sorted, func(m, n int32) int { return int(int64(a.slabs[m].base - a.slabs[n].base)) })
			for _, n := range sorted {
				if !yield(n) {
					return
				}
			}
		} else {
			for some := sh.some; some != 0; some &= some - 1 {
				if !a.circle(sh.head[bits.TrailingZeros8(some)], yield) {
					return
				}
			}
		}
		a.circle(sh.empty, yield)
	}
}

// circle yields the slabs of a circle and reports whether to go on.
func (a *Cells) circle(head int32, yield func(int32) bool) bool {
	for n := head; n != none; {
		if !yield(n) {
			return false
		}
		if n = a.slabs[n].next; n == head {
			break
		}
	}
	return true
}

// Check verifies the cells against themselves and against the table of live blocks, whose
// places belong to the cells where ours says so. The error names the invariant that is
// broken. It reads every slot.
func (a *Cells) Check(live *ledger.Table, ours func(device.Addr, ledger.Block) (place uint64, ok bool)) error {
	for _, err := range [...]error{a.checkSlabs(), a.checkShelves(), a.checkMagazines(), a.checkUse(live, ours)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSlabs verifies the bits of every slab and the sums over them.
func (a *Cells) checkSlabs() error {
	var used, usable, empties device.Size
	held := 0
	for n := range a.slabs {
		s := &a.slabs[n]
		if !s.held {
			continue
		}
		held++
		k := &a.kinds[s.class]
		free := s.free
		left := bits.OnesCount64(free)
		if k.wide {
			left = 0
			for i, w := range a.words[s.words:][:(k.slots+63)>>6] {
				left += bits.OnesCount64(w)
				if (w != 0) != (free>>i&1 != 0) {
					return fmt.Errorf("slab: invariant C1 (a slot is free or used): slab %d: word %d is %#x, summed up as %#x", n, i, w, free)
				}
			}
		}
		if left != int(s.left) || left > int(k.slots) {
			return fmt.Errorf("slab: invariant C1 (a slot is free or used): slab %d of %d slots: %d are free, counted %d", n, k.slots, left, s.left)
		}
		if uint32(left) == k.slots {
			empties += k.slab
			continue
		}
		usable += device.Size(k.slots) * k.slot
		used += device.Size(int(k.slots)-left) * k.slot
	}
	if used != a.used || usable != a.usable || empties != a.empties || held != a.taken {
		return fmt.Errorf("slab: invariant C4 (sums are over the slabs): %d, %d and %d bytes in %d slabs, counted %d, %d and %d in %d",
			used, usable, empties, held, a.used, a.usable, a.empties, a.taken)
	}
	return nil
}

// checkShelves verifies that each slab with a free slot is where it is looked for, once.
func (a *Cells) checkShelves() error {
	partial, empties := make([]int32, len(a.kinds)), make([]int32, len(a.kinds))
	listed := 0
	for i := range a.stocks {
		sh := &a.stocks[i]
		for l, head := range sh.head {
			if (head != none) != (sh.some>>l&1 != 0) {
				return fmt.Errorf("slab: invariant C3 (lists that are not empty are known): level %d of stock %d", l, i)
			}
		}
		found := int32(0)
		for n := range a.slabsInOrder(i) {
			s := &a.slabs[n]
			k := &a.kinds[s.class]
			if listed++; listed > len(a.slabs) || !s.held || s.stock(len(a.kinds)) != i || s.left == 0 {
				return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): slab %d in stock %d", n, i)
			}
			if uint32(s.left) == k.slots {
				empties[s.class]++
				found++
				continue
			}
			partial[s.class]++
			if want := a.level(k, s.left); want != s.level || found != 0 {
				return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): slab %d in level %d, want %d", n, s.level, want)
			}
		}
		if found != sh.empties || found > a.keep {
			return fmt.Errorf("slab: invariant C5 (empty slabs are kept up to a bound): stock %d has %d, counted %d, kept are %d", i, found, sh.empties, a.keep)
		}
		if err := a.checkHeap(i); err != nil {
			return err
		}
	}
	return a.checkListed(partial, empties, listed)
}

// checkHeap verifies the heap of a stock, if it has one.
func (a *Cells) checkHeap(stock int) error {
	if !a.lowest {
		return nil
	}
	h := a.heaps[stock]
	for i, n := range h {
		if int(a.slabs[n].prev) != i || a.slabs[h[(i-min(i, 1))/2]].base > a.slabs[n].base || a.stocks[stock].head[0] != h[0] {
			return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): slab %d at %d of the heap of stock %d", n, i, stock)
		}
	}
	return nil
}

// checkListed compares what the lists have with what is counted.
func (a *Cells) checkListed(partial, empties []int32, listed int) error {
	for i := range a.kinds {
		if k := &a.kinds[i]; k.partial != partial[i] || k.empties != empties[i] {
			return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): class %d: %d partial and %d empty slabs, counted %d and %d",
				i, partial[i], empties[i], k.partial, k.empties)
		}
	}
	for n := range a.slabs {
		if s := &a.slabs[n]; s.held && s.left != 0 {
			listed--
		}
	}
	if listed != 0 {
		return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): %d slabs too many are listed", listed)
	}
	return nil
}

// checkMagazines verifies the bounds of the magazine layer.
func (a *Cells) checkMagazines() error {
	m := &a.cached
	for i := range m.depots {
		d := &m.depots[i]
		count := int32(0)
		for n := d.head; n != none && count <= d.count; n = m.next[n] {
			count++
		}
		if count != d.count || d.least > d.count || d.count > m.limit {
			return fmt.Errorf("slab: invariant C6 (a depot has at most so many full magazines): depot %d: %d, counted %d, at least %d, at most %d",
				i, count, d.count, d.least, m.limit)
		}
	}
	for i := range m.racks {
		if r := &m.racks[i]; r.has < 0 || r.has > m.rounds || r.loaded == none && r.has > 0 || r.before == none && r.full {
			return fmt.Errorf("slab: invariant C6 (a magazine has at most so many slots): rack %d: %+v", i, *r)
		}
	}
	return nil
}

// eachCached yields every cell in a magazine, with the number of the rack or depot that the
// magazine is in.
func (a *Cells) eachCached(yield func(at int, cell Cell) bool) {
	m := &a.cached
	of := func(i int, n, has int32) bool {
		for _, cell := range m.cells[n*m.rounds:][:has] {
			if !yield(i, cell) {
				return false
			}
		}
		return true
	}
	for i := range m.racks {
		r := &m.racks[i]
		if r.has > 0 && !of(i, r.loaded, r.has) || r.full && !of(i, r.before, m.rounds) {
			return
		}
	}
	for i := range m.depots {
		for n := m.depots[i].head; n != none; n = m.next[n] {
			if !of(i, n, m.rounds) {
				return
			}
		}
	}
}

// serves reports whether the magazines of a rack or depot may have slots of a slab: those of
// its class and, unless full magazines pass from one segment to another through a depot, of
// its segment.
func (m *magazines) serves(at int, s *slab) bool {
	if m.own || m.limit == 0 {
		return at == s.stock(m.classes)
	}
	return at%m.classes == int(s.class)
}

// isUsed reports whether a slot in use of a slab starts at an address.
func (a *Cells) isUsed(s *slab, at device.Addr) bool {
	k := &a.kinds[s.class]
	off := at - s.base // of an address below, more than any slab has
	slot := uint64(off) / uint64(k.slot)
	return uint64(off)%uint64(k.slot) == 0 && slot < uint64(k.slots) && !a.isFree(s, uint32(slot))
}

// checkUse verifies that each slot in use is a live block or in a magazine, once.
func (a *Cells) checkUse(live *ledger.Table, ours func(device.Addr, ledger.Block) (uint64, bool)) (err error) {
	seen := map[device.Addr]bool{}
	look := func(cell Cell) bool {
		if n := int(cell.Place); n >= len(a.slabs) || !a.slabs[n].held || !a.isUsed(&a.slabs[n], cell.Addr) || seen[cell.Addr] {
			err = fmt.Errorf("slab: invariant C7 (a slot in use is live or in a magazine): %v of slab %d", cell.Addr, n)
			return false
		}
		seen[cell.Addr] = true
		return true
	}
	var cached, inUse device.Size
	for i, cell := range a.eachCached {
		if !look(cell) {
			return err
		}
		s := &a.slabs[cell.Place]
		if _, ok := live.Get(cell.Addr); ok || !a.cached.serves(i, s) {
			return fmt.Errorf("slab: invariant C7 (a slot in use is live or in a magazine): %v is both, or with the magazines of %d", cell.Addr, i)
		}
		cached += a.kinds[s.class].slot
	}
	for at, b := range live.Range {
		if place, ok := ours(at, b); ok {
			if !look(Cell{at, place}) {
				return err
			}
			inUse += a.Granted(place)
		}
	}
	if cached != a.cached.bytes || cached+inUse != a.used {
		return fmt.Errorf("slab: invariant C7 (a slot in use is live or in a magazine): %d bytes live, %d in magazines, counted %d, in use %d",
			inUse, cached, a.cached.bytes, a.used)
	}
	return nil
}
