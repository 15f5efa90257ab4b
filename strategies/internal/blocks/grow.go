package blocks

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

const (
	// keptLeast and keptShare bound the number of kept direct regions: keptLeast plus keptShare for
	// each one of the highest number live at once. The recorded traces keep fewer.
	keptLeast = 128
	keptShare = 4
	// MostAlign is the alignment of regions: the page size with which GPU drivers back them. Any
	// alignment up to it is honored.
	MostAlign = 2 * device.MiB
	// MostRequest bounds requests, so that sums and roundings of a few do not overflow.
	MostRequest device.Size = 1 << 60
	// mostRegions bounds the records of regions, of about 1 KiB each where they have blocks.
	mostRegions = 1 << 20
)

// number returns the number of a released region or a new one.
func (b *Engine) number() (slot uint32, err error) {
	if n := len(b.spare); n > 0 {
		return b.spare[n-1], nil
	}
	if len(b.regs) == mostRegions {
		return 0, regions.ErrTooMany
	}
	return uint32(len(b.regs)), nil
}

// enter records a new region under a number; direct is the size of its block, 0 for a pool region.
// Tables of an earlier region of that number are used again.
func (b *Engine) enter(slot uint32, held device.Region, direct device.Size) *region {
	if n := len(b.spare); n > 0 && b.spare[n-1] == slot {
		b.spare = b.spare[:n-1]
	} else {
		b.regs = append(b.regs, region{})
		if b.lists {
			b.listed = append(b.listed, listing{})
		}
	}
	r := &b.regs[slot]
	*r = region{base: held.Addr, size: held.Size, held: true, direct: direct, age: b.ages, slot: slot, sets: r.sets,
		upper: r.upper}
	b.ages++
	if b.ages == 1 { // the first region: New returned a copy, so only now the address of b is final
		b.where = index.NewAtlas(b.extent)
	}
	b.where.Set(held.Addr>>coarse, r.mapped(), r.place()+1)
	return r
}

// addRegion reserves a region of at least n bytes for the pool. On error nothing has changed.
func (b *Engine) addRegion(n device.Size) error {
	slot, err := b.number()
	if err != nil {
		return err
	}
	held, err := b.pool.Grow(n, MostAlign, int32(slot))
	b.asked = b.pool.Asked()
	if err != nil {
		return err
	}
	r := b.enter(slot, held, 0)
	r.units = uint32(min(held.Size>>b.shift, b.most))
	r.least = mostClasses - 1
	if b.binary {
		r.top = uint8(bits.Len32(r.units - 1))
		r.least = max(r.top, upperLevels-1) - (upperLevels - 1)
	}
	if len(r.sets) != 0 {
		b.makeSets(r)
	}
	if b.lists { // a record that had a smaller region gets lists for the classes that it lacked
		o := &b.listed[slot]
		o.lists = append(o.lists, make([]list, max(b.classes.within(r.units)+1, len(o.lists))-len(o.lists))...)
	}
	if b.fullest {
		r.bucket = buckets - 1
	}
	b.enrol(slot, r)
	for root := range func(yield func(node) bool) { b.classes.cut(r.units, yield) } {
		b.add(r, root)
	}
	b.freed += device.Size(r.units) << b.shift
	return nil
}

// vacate releases a region without a live block if the policy says so.
func (b *Engine) vacate(slot uint32, r *region) {
	if b.pool.Vacated(r.size) {
		_ = b.drop(slot) // refused regions stay held
	}
}

// drop releases a pool region without a live block. If the device refuses, it stays.
func (b *Engine) drop(slot uint32) error {
	r := &b.regs[slot]
	if err := b.pool.Drop(r.base); err != nil {
		return err
	}
	has := r.has
	b.strike(r)
	for c := range has.all {
		b.count[c] -= uint32(b.len(r, c))
		if !r.isUpper(c) {
			b.store.clear(&r.sets[c])
		}
	}
	b.store.clear(&r.upper)
	if b.lists {
		clear(b.listed[slot].lists)
	}
	b.freed -= device.Size(r.units) << b.shift
	b.forget(slot)
	return nil
}

// forget makes a number spare. Its tables are kept.
func (b *Engine) forget(slot uint32) {
	r := &b.regs[slot]
	b.where.Clear(r.base>>coarse, r.mapped(), r.place()+1)
	*r = region{sets: r.sets, upper: r.upper}
	b.spare = append(b.spare, slot)
}

// reclaim releases everything without a live block, and reports whether it released memory.
func (b *Engine) reclaim() bool {
	n, _ := b.Trim() // refused regions stay held
	return n != 0
}

// Trim releases every region without a live block and returns their bytes. A region that the device
// refuses stays; the error is the first.
func (b *Engine) Trim() (bytes device.Size, first error) {
	before := b.stats.Reserved
	for slot := range b.regs {
		if b.cache == 0 && b.pool.Empty() == 0 {
			break // so that a refusal when all is in use costs nothing
		}
		r := &b.regs[slot]
		if !r.held || r.used != 0 || r.direct != 0 && !r.free {
			continue
		}
		var err error
		if r.direct != 0 {
			err = b.dropDirect(uint32(slot))
		} else {
			err = b.drop(uint32(slot))
		}
		if err != nil && first == nil {
			first = err
		}
	}
	return before - b.stats.Reserved, first
}

// mostKept returns the size of the largest kept region that serves a request of size bytes.
func mostKept(size device.Size) device.Size { return size + size/8 }

// keptAt returns the index in b.kept for a region of that size and age.
func (b *Engine) keptAt(size device.Size, age uint64) int {
	i, _ := slices.BinarySearchFunc(b.kept, size, func(slot uint32, size device.Size) int {
		r := &b.regs[slot]
		return cmp.Or(cmp.Compare(r.direct, size), cmp.Compare(r.age, age))
	})
	return i
}

// reserveDirect reserves a region for one block. On error nothing has changed.
func (b *Engine) reserveDirect(size device.Size) (slot uint32, err error) {
	b.shed(size)
	if slot, err = b.number(); err != nil { // after shed, which makes numbers spare
		return 0, err
	}
	if !b.pool.Within(size) {
		return 0, regions.ErrLimit
	}
	b.asked = size
	held, err := b.pool.Reserve(size, MostAlign, int32(slot))
	if err != nil {
		return 0, err
	}
	b.enter(slot, held, size)
	if !b.pool.Within(0) { // the device rounds up
		if err := b.dropDirect(slot); err != nil {
			b.retain(slot)
		}
		return 0, regions.ErrLimit
	}
	return slot, nil
}

func (b *Engine) takeDirect(slot uint32) (device.Addr, device.Size, uint64) {
	r := &b.regs[slot]
	r.free = false
	b.lent += r.direct
	b.peak = max(b.peak, b.lent)
	b.loans++
	b.mostLoans = max(b.mostLoans, b.loans)
	return r.base, r.direct, directPlace | uint64(slot)
}

// returnDirect frees the block of a direct region, keeps the region, and releases the oldest ones
// while more is kept than DirectCacheBytes.
func (b *Engine) returnDirect(slot uint32, r *region) device.Size {
	size := r.direct
	r.age = b.ages
	b.ages++
	b.lent -= size
	b.loans--
	b.retain(slot)
	for b.keep != 0 && b.cache > b.keep && b.dropOldest() {
	}
	return size
}

// shed releases kept regions, oldest first, before one of size bytes is reserved, until kept and
// live ones are at most a quarter above the most that ever lived. A demand that recurs in each step
// finds nearly all that it left, and wandering sizes do not pile up. The number of regions is
// bounded too: after one huge block any number of small ones would stay below those bytes.
func (b *Engine) shed(size device.Size) {
	for len(b.kept) >= keptLeast+keptShare*b.mostLoans && b.dropOldest() {
	}
	if b.keep != 0 {
		return
	}
	most := max(b.peak, b.lent+size)
	for b.cache != 0 && b.lent+b.cache+size > most+most/4 && b.dropOldest() {
	}
}

// dropOldest releases the direct region that was kept longest, and reports whether the device took
// it.
func (b *Engine) dropOldest() bool {
	oldest := slices.MinFunc(b.kept, func(x, y uint32) int { return cmp.Compare(b.regs[x].age, b.regs[y].age) })
	return b.dropDirect(oldest) == nil
}

// retain keeps a direct region without a live block for reuse.
func (b *Engine) retain(slot uint32) {
	r := &b.regs[slot]
	r.free = true
	b.kept = slices.Insert(b.kept, b.keptAt(r.direct, r.age), slot)
	b.cache += r.direct
}

// dropDirect releases a direct region without a live block. If the device refuses, it stays.
func (b *Engine) dropDirect(slot uint32) error {
	r := &b.regs[slot]
	if err := b.pool.Release(r.base); err != nil {
		return err
	}
	if r.free {
		i := b.keptAt(r.direct, r.age)
		b.kept = slices.Delete(b.kept, i, i+1)
		b.cache -= r.direct
	}
	b.forget(slot)
	return nil
}
