package cells

import (
	"fmt"
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// held reports whether a record is of a slab.
func (s *slab) held() bool { return s.base != 0 }

// Check verifies every slot and index. The error names the invariant that is broken.
func (a *Engine) Check() error {
	for _, err := range [...]error{a.checkSlabs(), a.checkShelves(), a.checkMagazines(), a.checkUse(), a.checkWhere()} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Engine) checkSlabs() error {
	var used, usable, empties device.Size
	held := 0
	for n := range a.slabs {
		s := &a.slabs[n]
		if !s.held() {
			continue
		}
		held++
		k := &a.kinds[s.class]
		left := bits.OnesCount64(s.free)
		if k.wide {
			left = 0
			for i, w := range a.words.all[a.backs[n].words:][:(k.slots+63)>>6] {
				left += bits.OnesCount64(w)
				if (w != 0) != (s.free>>i&1 != 0) {
					return fmt.Errorf("slab: invariant C1 (a slot is free or used): slab %d: word %d is %#x, summed up as %#x", n,
						i, w, s.free)
				}
			}
		}
		if left != int(s.left) || left > int(k.slots) {
			return fmt.Errorf("slab: invariant C1 (a slot is free or used): slab %d of %d slots: %d are free, counted %d", n,
				k.slots, left, s.left)
		}
		if uint32(left) == k.slots {
			empties += k.slab
			continue
		}
		usable += device.Size(k.slots) * k.slot
		used += device.Size(int(k.slots)-left) * k.slot
	}
	if used != a.used || usable != a.usable || empties != a.empties || held != a.taken {
		return fmt.Errorf("slab: invariant C4 (sums are over the slabs): %d, %d and %d bytes in %d slabs, counted %d, %d "+
			"and %d in %d",
			used, usable, empties, held, a.used, a.usable, a.empties, a.taken)
	}
	return nil
}

// checkShelves verifies that each slab with a free slot is once where Grab looks for it.
func (a *Engine) checkShelves() error {
	partial, empties := make([]int32, len(a.kinds)), make([]int32, len(a.kinds))
	listed := 0
	for i := range a.stocks {
		sh := &a.stocks[i]
		for l, head := range sh.head {
			if (head != None) != (sh.some>>l&1 != 0) {
				return fmt.Errorf("slab: invariant C3 (lists that are not empty are known): level %d of stock %d", l, i)
			}
		}
		found := int32(0)
		for n, level := range a.slabsInOrder(i) {
			s := &a.slabs[n]
			k := &a.kinds[s.class]
			if listed++; listed > len(a.slabs) || !s.held() || a.stockOf(n, s) != i {
				return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): slab %d in stock %d", n, i)
			}
			if want := k.level(uint32(s.left)); want != level {
				return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): slab %d in level %d, want %d", n,
					level, want)
			}
			if level == levelEmpty {
				empties[s.class]++
				found++
			} else {
				partial[s.class]++
			}
		}
		if found != sh.empties || found > a.keep {
			return fmt.Errorf("slab: invariant C5 (empty slabs are kept up to a bound): stock %d has %d, counted %d, "+
				"kept are %d", i, found, sh.empties, a.keep)
		}
		if err := a.checkHeap(i); err != nil {
			return err
		}
	}
	return a.checkListed(partial, empties, listed)
}

func (a *Engine) checkHeap(stock int) error {
	if !a.lowest {
		return nil
	}
	h := a.heaps[stock]
	for i, n := range h {
		if int(a.slabs[n].prev) != i || a.slabs[h[(i-min(i, 1))/2]].base > a.slabs[n].base ||
			a.stocks[stock].head[0] != h[0] {
			return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): slab %d at %d of the heap of stock %d",
				n, i, stock)
		}
	}
	return nil
}

func (a *Engine) checkListed(partial, empties []int32, listed int) error {
	for i := range a.kinds {
		if k := &a.kinds[i]; k.partial != partial[i] || k.empties != empties[i] {
			return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): class %d: %d partial and %d empty "+
				"slabs, counted %d and %d",
				i, partial[i], empties[i], k.partial, k.empties)
		}
	}
	for n := range a.slabs {
		if s := &a.slabs[n]; s.held() && s.left != 0 {
			listed--
		}
	}
	if listed != 0 {
		return fmt.Errorf("slab: invariant C2 (a slab is in the list of its level): %d slabs too many are listed", listed)
	}
	return nil
}

func (a *Engine) checkMagazines() error {
	m := &a.cached
	for i := range m.depots {
		d := &m.depots[i]
		count := int32(0)
		for n := d.head; n != None && count <= d.count; n = m.next[n] {
			count++
		}
		if count != d.count || d.least > d.count || d.count > m.limit {
			return fmt.Errorf("slab: invariant C6 (a depot has at most Depot full magazines): depot %d: %d, counted %d, at "+
				"least %d, at most %d",
				i, count, d.count, d.least, m.limit)
		}
	}
	for i := range m.racks {
		if r := &m.racks[i]; r.has < 0 || r.has > m.rounds || r.loaded == None && r.has > 0 || r.before == None && r.full {
			return fmt.Errorf("slab: invariant C6 (a magazine has at most MagazineRounds slots): rack %d: %+v", i, *r)
		}
	}
	return nil
}

// eachCached yields every cell in a magazine, with the number of its rack or depot.
func (a *Engine) eachCached(yield func(at int, c cell) bool) {
	m := &a.cached
	of := func(i int, n, has int32) bool {
		for _, c := range m.cells[n*m.rounds:][:has] {
			if !yield(i, c) {
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
		for n := m.depots[i].head; n != None; n = m.next[n] {
			if !of(i, n, m.rounds) {
				return
			}
		}
	}
}

// serves reports whether the magazines of a rack or depot may hold slots of a slab: the slabs of
// its class and, unless depots pass magazines between segments, of its segment.
func (a *Engine) serves(at int, slab int32) bool {
	m, s := &a.cached, &a.slabs[slab]
	if m.own || m.limit == 0 {
		return at == a.stockOf(slab, s)
	}
	return at%m.classes == int(s.class)
}

// checkUse verifies that each slot in use is live or in one magazine.
func (a *Engine) checkUse() error {
	cached := map[cell]bool{}
	var bytes device.Size
	for i, c := range a.eachCached {
		if int(c.slab) >= len(a.slabs) || !a.slabs[c.slab].held() || c.slot >= a.kinds[a.slabs[c.slab].class].slots ||
			cached[c] || !a.serves(i, c.slab) {
			return fmt.Errorf("slab: invariant C7 (a slot in use is live or in a magazine): %+v is in a magazine of %d", c, i)
		}
		cached[c] = true
		bytes += a.kinds[a.slabs[c.slab].class].slot
	}
	if bytes != a.cached.bytes {
		return fmt.Errorf("slab: invariant C7 (a slot in use is live or in a magazine): %d bytes are in magazines, "+
			"counted %d", bytes, a.cached.bytes)
	}
	noted := 0
	for n := range a.slabs {
		if !a.slabs[n].held() {
			continue
		}
		more, err := a.checkSlots(int32(n), cached)
		if err != nil {
			return err
		}
		noted += more
	}
	if noted != a.notes.Len() || len(cached) != 0 {
		return fmt.Errorf("slab: invariant C7 (a slot in use is live or in a magazine): %d live slots are noted, there are "+
			"%d notes; %d are in magazines and not marked so",
			noted, a.notes.Len(), len(cached))
	}
	return nil
}

// checkSlots verifies the slots of a slab, removes its cached ones from cached, and returns the
// number of notes.
func (a *Engine) checkSlots(n int32, cached map[cell]bool) (noted int, err error) {
	s := &a.slabs[n]
	k := &a.kinds[s.class]
	for slot := range k.slots {
		c := cell{n, slot}
		if a.isFree(c) {
			continue
		}
		var ok bool
		switch slack := *a.slackOf(n, slot); slack {
		case slackCached:
			ok = cached[c]
			delete(cached, c)
		case slackNoted:
			_, ok = a.notes.Get(s.base.Add(device.Size(slot) * k.slot))
			noted++
		default:
			ok = device.Size(slack) < k.slot
		}
		if !ok {
			return 0, fmt.Errorf("slab: invariant C7 (a slot in use is live or in a magazine): slot %d of slab %d is marked %d",
				slot, n, *a.slackOf(n, slot))
		}
	}
	return noted, nil
}

// checkWhere verifies that the atlas maps every byte of a slab to it, and no other.
func (a *Engine) checkWhere() error {
	left := make([]device.Size, len(a.slabs)) // bytes of each slab to which no entry led
	for n := range a.slabs {
		if s := &a.slabs[n]; s.held() {
			left[n] = a.kinds[s.class].slab
		}
	}
	for e := range a.where.All {
		n := int(e.Label) - 1
		if n < 0 || n >= len(a.slabs) || !a.slabs[n].held() {
			return fmt.Errorf("slab: invariant C11 (the atlas leads to the slabs): from %v to slab %d", e.Addr, n)
		}
		s := &a.slabs[n]
		from, to := max(e.Addr, s.base), min(e.Addr.Add(e.Size-1), s.base.Add(a.kinds[s.class].slab-1))
		if from > to {
			return fmt.Errorf("slab: invariant C11 (the atlas leads to the slabs): from %v to slab %d, which is "+
				"not there", e.Addr, n)
		}
		left[n] -= to.Sub(from) + 1
	}
	for n, bytes := range left {
		if bytes != 0 {
			return fmt.Errorf("slab: invariant C11 (the atlas leads to the slabs): not from %d bytes of slab %d", bytes, n)
		}
	}
	return nil
}
