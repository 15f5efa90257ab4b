package blocks

import (
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/forecast"
	"github.com/vramyard/vramyard/kit/index"
	"github.com/vramyard/vramyard/kit/regions"
)

// Engine is a buddy system without a table of live blocks. Its user keeps the requested size of
// each block and checks the addresses that are freed. The requested size and the place of an
// address determine the region and the granted size. Use [New]. It is not safe for concurrent use
// and allocates nothing on the heap once warm.
//
// It counts only regions in the given stats; its user counts granted and freed blocks.
type Engine struct {
	some    mask      // classes of which some region has a free block
	ranked  []places  // per class, the regions that have a free block of it, by key
	byRank  []uint32  // numbers of the pool regions in the order of choice
	regs    []region  // by number, which is the label in pool
	listed  []listing // of each region; nil unless placement is by age
	count   []uint32  // per class, free blocks
	store   store     // of all sets
	classes classes

	shift    uint8       // log2 of the bytes of a unit
	binary   bool        // buddies differ in one bit
	trims    bool        // the tail of a block is returned
	lists    bool        // free blocks are listed by age
	fullest  bool        // regions have buckets
	anywhere bool        // the place decides before the class
	high     bool        // the highest block is taken
	lazy     bool        // two free buddies may stay unmerged
	unmerged bool        // there may be such buddies now
	halves   device.Size // largest request that halves.go serves, 0 for none
	most     device.Size // bound of the usable units of a region
	slack    uint32      // free blocks of a class below which a freed one is not merged
	grain    device.Size // sizes are rounded up to it first; 0 for no more than units
	direct   device.Size // larger requests get a region of their own
	keep     device.Size // bytes of such regions that may be kept for reuse; 0: shed decides
	choice   string      // which region is taken
	stride   uint32      // keys of one bucket, above every rank
	ages     uint64      // regions so far, and direct blocks kept so far
	freed    device.Size // bytes in free blocks

	pool  regions.Pool
	where index.Atlas // places of the blocks of the regions held, plus one
	stats *alloc.Stats
	spare []uint32    // numbers without a region
	kept  []uint32    // direct regions kept for reuse, by size, then age
	cache device.Size // their bytes
	lent  device.Size // bytes of live direct regions
	peak  device.Size // most of lent so far

	loans, mostLoans int         // live direct regions, and the most of them so far
	asked            device.Size // bytes of the last reservation tried

	placer *forecast.Placer // made at first use
}

// New returns an engine over src that holds nothing and counts regions in stats, whose Limit it
// sets. It fails if c is invalid.
func New(src device.Source, stats *alloc.Stats, c Config) (Engine, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return Engine{}, err
	}
	b := Engine{
		classes: classesOf(c.Family), shift: uint8(log2(c.BlockBytes)), binary: c.Family == Binary,
		most: c.mostUnits(), trims: c.Trim == TrimOn, lists: c.Placement == SmallestNewest,
		fullest:  c.RegionChoice == Fullest,
		anywhere: c.Placement == Leftmost || c.Placement == TopDown, high: c.Placement == TopDown,
		lazy: c.Coalescing != Eager, direct: c.DirectBytes, keep: c.DirectCacheBytes,
		choice: c.RegionChoice, stride: 64, stats: stats, pool: regions.NewPool(src, stats, c.policy()),
	}
	if c.TrimBytes != c.BlockBytes {
		b.grain = c.TrimBytes
	}
	switch c.Coalescing {
	case Lazy:
		b.slack = uint32(c.Slack)
	case OnFailure:
		b.slack = 1<<32 - 1
	}
	if b.binary && !b.trims && !b.lists && !b.fullest && !b.anywhere && b.grain == 0 {
		b.halves = min(b.direct, b.most<<b.shift)
	}
	b.ranked = make([]places, len(b.classes.size))
	b.count = make([]uint32, len(b.classes.size))
	return b, nil
}

// directPlace marks the place of a direct block, above the bits of the number of its region.
const directPlace = 1 << 30

// coarse is log2 of the bytes that are one unit of the atlas. An area is 32 MiB then, as large as a
// region by default, and takes 4 bytes.
const coarse = 5

func (b *Engine) extent(label uint32) (device.Addr, device.Size) {
	r := &b.regs[slotOf(uint64(label)-1)]
	return r.base >> coarse, r.mapped()
}

// mapped returns the units of the atlas that a region takes, rounded up. Regions start at larger
// multiples. Of a direct region only the start is looked up, so a huge one takes no more.
func (r *region) mapped() device.Size {
	return (r.found()-1)>>coarse + 1
}

// found returns the bytes at the start of a region whose addresses the atlas maps to it.
func (r *region) found() device.Size {
	if r.direct != 0 {
		return min(r.size, mostFound)
	}
	return r.size
}

// mostFound bounds the result of found for direct regions: the area of one entry of the atlas.
const mostFound = 32 * device.MiB

// PlaceOf returns the place of a block at an address, and whether a region may be there. It does
// not check that a block starts there. It reads a table of 4 bytes for each 32 MiB held, and 64
// more where several regions share these.
func (b *Engine) PlaceOf(addr device.Addr) (place uint64, ok bool) {
	label := b.where.Get(addr >> coarse)
	return uint64(label) - 1, label != 0
}

func (r *region) place() uint32 {
	if r.direct != 0 {
		return directPlace | r.slot
	}
	return r.slot
}

func slotOf(place uint64) uint32 { return uint32(place) &^ directPlace }

// need is a request in units: a start at a multiple of align, out of a block of a class.
type need struct {
	units, align uint32
	class        int // -1 if no class is large enough
}

func (b *Engine) unitsOf(n device.Size) device.Size {
	if b.grain != 0 { // a division is the slowest step here, and few configurations need it
		n = (n + b.grain - 1) / b.grain * b.grain
	}
	return (n + 1<<(b.shift&63) - 1) >> (b.shift & 63)
}

// grantedOf returns the units that a pool block for n bytes is granted. They depend on n alone, so
// they need not be kept for live blocks.
//
// Precondition: there is a class for them.
func (b *Engine) grantedOf(n device.Size) uint32 {
	units := uint32(b.unitsOf(n))
	switch {
	case b.trims:
		return units
	case b.binary:
		return 1 << (bits.Len32(units-1) & 31)
	}
	return b.classes.size[b.classes.holding(units)]
}

func (b *Engine) needOf(n, align device.Size) need {
	units := b.unitsOf(n)
	if units > b.most {
		return need{class: -1}
	}
	w := need{units: uint32(units), align: 1, class: b.classes.holding(uint32(units))}
	switch {
	case b.trims:
	case b.binary:
		w.units = 1 << (w.class & 31)
	default:
		w.units = b.classes.size[w.class]
	}
	if align>>(b.shift&63) > 1 {
		return b.alignedNeed(w, align)
	}
	return w
}

// alignedNeed returns w for blocks at multiples of align.
func (b *Engine) alignedNeed(w need, align device.Size) need {
	w.align = uint32(align >> b.shift)
	if w.align > 1<<b.classes.log[w.class] {
		// A block with this room contains an aligned start.
		room := device.Size(w.units) + device.Size(w.align) - 1
		if b.binary {
			room = max(device.Size(w.units), device.Size(w.align)) // every such block starts aligned
		}
		if room > b.most {
			return need{class: -1}
		}
		w.class = b.classes.holding(uint32(room))
	}
	return w
}

// Judge returns why a request can never be granted, ReasonNone if it can.
func (b *Engine) Judge(r *alloc.Request) power.Reason {
	switch {
	case r.Size == 0:
		return power.ReasonZero
	case r.Size > MostRequest:
		return power.ReasonTooLarge
	case r.Align != 0 && !honours(r.Align):
		return power.ReasonAlignment
	}
	return power.ReasonNone
}

func honours(align device.Size) bool { return device.IsPowerOfTwo(align) && align <= MostAlign }

// Grab grants a block of at least n bytes at a multiple of align, at the high end of a region if
// hint says so. It returns address, granted bytes and the place that Return wants.
//
// The error is the device's, [regions.ErrLimit] or [regions.ErrTooMany]. Free memory may have been
// merged and released by then, and Asked returns the size of the reservation.
//
// Apart from device calls it costs O(classes + levels of a bit set) and a step for each split.
//
// Precondition: Judge returns ReasonNone for the request.
func (b *Engine) Grab(n, align device.Size, hint alloc.Hint) (addr device.Addr, granted device.Size, place uint64,
	err error) {
	b.asked = 0
	ok := false
	if b.mayHalve(n, align, hint) { // the common request skips GrabHeld
		if addr, granted, place, ok = b.grabHalf(n); ok {
			return addr, granted, place, nil
		}
	}
	if addr, granted, place, ok = b.grabOther(n, align, hint); ok {
		return addr, granted, place, nil
	}
	if addr, granted, place, err = b.grabNew(n, align, hint); err != nil && b.reclaim() {
		addr, granted, place, err = b.grabNew(n, align, hint)
	}
	if err != nil {
		return b.GrabLast(n, align, hint, err)
	}
	return addr, granted, place, nil
}

// Asked returns the bytes of the last reservation that the last Grab tried, 0 if none.
func (b *Engine) Asked() device.Size { return b.asked }

// Return frees the block of n bytes at addr, merges it with its buddies as Config.Coalescing says,
// and returns the bytes that were granted. If the device refuses to take its region back, the
// region stays.
//
// Precondition: the block was granted for n bytes with that place, and was not returned since.
func (b *Engine) Return(addr device.Addr, n device.Size, place uint64) device.Size {
	slot := slotOf(place)
	r := &b.regs[slot]
	if place&directPlace != 0 {
		return b.returnDirect(slot, r)
	}
	if n <= b.halves {
		return b.returnHalf(slot, r, addr, n)
	}
	units := b.grantedOf(n)
	from := uint32(addr.Sub(r.base) >> (b.shift & 63))
	b.freed += device.Size(units) << (b.shift & 63)
	if b.binary {
		b.releaseBinary(r, from, units)
	} else {
		b.release(r, from, units)
	}
	b.relieve(slot, r, units)
	return device.Size(units) << (b.shift & 63)
}

// Granted returns the bytes of a live block for n bytes from its place.
func (b *Engine) Granted(n device.Size, place uint64) device.Size {
	if place&directPlace != 0 {
		return b.regs[slotOf(place)].direct
	}
	return device.Size(b.grantedOf(n)) << b.shift
}

// find takes a free block of at least a class out of the sets, as the placement says. Sets that
// have words, as nearly all do, are read without a call.
func (b *Engine) find(class int, hint alloc.Hint) (slot uint32, from node, ok bool) {
	c := b.some.from(class)
	if c == mostClasses {
		return 0, node{}, false
	}
	if b.anywhere || hint == alloc.HintHigh {
		return b.findAnywhere(c, hint)
	}
	var key uint32
	if first := &b.ranked[c]; first.room != 0 {
		key = b.store.lowest(first)
	} else {
		key = b.store.min(first)
	}
	slot = b.byRank[key&(b.stride-1)]
	r := &b.regs[slot]
	if b.lists {
		from = node{b.listed[slot].lists[c].newest - 1, c}
		b.remove(r, from)
		return slot, from, true
	}
	var last uint64
	if r.isUpper(c) {
		i := b.store.lowestOf(&r.upper, r.level(c))
		last = b.store.dropOf(&r.upper, i, r.level(c))
		from = node{r.unit(i, c), c}
	} else {
		s := &r.sets[c]
		i := b.store.min(s)
		if b.store.remove(s, i) {
			last = 1
		}
		from = node{i << (b.classes.log[c] & 31), c}
	}
	b.lose(r, c, last)
	return slot, from, true
}

// findAnywhere is find where the position decides before the class: the first region that can
// serve, and in it the lowest or highest block that can.
//
// Precondition: class c has a free block, and no smaller class serves.
func (b *Engine) findAnywhere(c int, hint alloc.Hint) (slot uint32, from node, ok bool) {
	best := ^uint32(0)
	for k := c; k < mostClasses; k = b.some.from(k + 1) {
		key := b.store.min(&b.ranked[k])
		best = min(best, key)
	}
	slot = b.byRank[best&(b.stride-1)]
	r := &b.regs[slot]
	high := b.high || hint == alloc.HintHigh
	for k := r.has.from(c); k < mostClasses; k = r.has.from(k + 1) {
		if high {
			if at := b.highest(r, k); !ok || at > from.at {
				from = node{at, k}
			}
		} else if at := b.lowest(r, k); !ok || at < from.at {
			from = node{at, k}
		}
		ok = true
	}
	b.remove(r, from)
	return slot, from, true
}

// take grants w out of a block that find took, and makes the rest of it free.
func (b *Engine) take(slot uint32, from node, w need, hint alloc.Hint) (device.Addr, device.Size, uint64) {
	r := &b.regs[slot]
	at := from.at
	switch {
	case b.high || hint == alloc.HintHigh:
		at = b.carve(r, b.descend(r, from, w.class, true), w)
	case b.binary:
		b.carveBinary(r, from, w.units)
	default:
		at = b.carve(r, b.descend(r, from, w.class, false), w)
	}
	granted := device.Size(w.units) << (b.shift & 63)
	b.freed -= granted
	b.occupy(r, w.units)
	return r.base.Add(device.Size(at) << (b.shift & 63)), granted, uint64(slot)
}
