package blocks

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

// Host memory of the records that are not slices of words, in bytes.
const (
	regionBytes  = 128
	listingBytes = 48
	placesBytes  = 16
	setBytes     = 176
	linkBytes    = 8
	listBytes    = 8
)

// Span is a tile of a region as the engine knows it.
type Span struct {
	Region device.Addr // start of the region
	Addr   device.Addr // first byte
	Size   device.Size // bytes
	State  alloc.State // Free, Live, or Slack for what the region has beyond its blocks
	Class  int32       // of a free block of the pool its class, else alloc.NoClass
}

// Lengths returns the bytes granted to the live block at an address, or 0. The user of the engine
// keeps the table of blocks.
type Lengths func(device.Addr) device.Size

// LargestFree returns the bytes of the largest free block, or 0.
func (b *Engine) LargestFree() (largest device.Size) {
	if c := b.some.largest(); c >= 0 {
		largest = device.Size(b.classes.size[c]) << b.shift
	}
	if n := len(b.kept); n > 0 {
		largest = max(largest, b.regs[b.kept[n-1]].direct)
	}
	return largest
}

// FreeBytes returns the bytes in free blocks.
func (b *Engine) FreeBytes() device.Size { return b.freed + b.cache }

// Bytes returns the host memory of the engine, unused capacity included, in O(regions * classes).
func (b *Engine) Bytes() device.Size {
	n := b.pool.Bytes() + b.where.Bytes() + b.classes.bytes() + device.Size(cap(b.regs))*regionBytes
	n += device.Size(cap(b.byRank)+cap(b.spare)+cap(b.kept)+cap(b.count)) * 4
	n += device.Size(cap(b.ranked))*placesBytes + b.store.bytes()
	for i := range b.regs {
		n += device.Size(cap(b.regs[i].sets)) * placesBytes
	}
	n += device.Size(cap(b.listed)) * listingBytes
	for _, o := range b.listed {
		n += device.Size(cap(o.lists))*listBytes + device.Size(cap(o.links))*linkBytes
	}
	return n
}

// ReleaseAll releases every region, oldest first, and forgets every block. Regions that the device
// refuses stay; the error is the first. Afterwards only WalkSlack and ReleaseAll may be called.
func (b *Engine) ReleaseAll() error {
	b.regs, b.listed, b.byRank, b.spare, b.kept, b.ranked, b.store, b.where = nil, nil, nil, nil, nil, nil, store{},
		index.Atlas{}
	b.some, b.freed, b.cache = mask{}, 0, 0
	return b.pool.ReleaseAll()
}

// WalkSlack yields what ReleaseAll left, each region as one chunk of slack.
func (b *Engine) WalkSlack(yield func(alloc.Chunk) bool) { b.pool.WalkSlack(yield) }

// Spans yields every tile of every region, by address.
func (b *Engine) Spans(live Lengths, yield func(Span) bool) {
	for i := range b.pool.Len() {
		if !b.spansOf(uint32(b.pool.At(i).Label), live, yield) {
			return
		}
	}
}

// spansOf yields the tiles of one region. A tile that is neither free nor live, which is a broken
// invariant, is yielded as live. It reports whether the walk goes on.
func (b *Engine) spansOf(slot uint32, live Lengths, yield func(Span) bool) bool {
	r := &b.regs[slot]
	s := Span{Region: r.base, Addr: r.base, Class: alloc.NoClass}
	if r.direct != 0 {
		s.Size = r.direct
		if !r.free {
			s.State = alloc.Live
			live(s.Addr) // the caller identifies the block in this call; its length is known
		}
		return yield(s) && b.slackOf(r, r.direct, yield)
	}
	next := b.heads(r)
	for at := uint32(0); at < r.units; {
		s = Span{Region: r.base, Addr: r.base.Add(device.Size(at) << b.shift), Class: alloc.NoClass}
		if n, ok := next.from(b, r, at); ok && n.at == at {
			s.State, s.Class, s.Size = alloc.Free, int32(n.class), device.Size(b.classes.size[n.class])<<b.shift
		} else {
			s.State, s.Size = alloc.Live, live(s.Addr)
			if until := device.Size(n.at-at) << b.shift; s.Size == 0 || s.Size > until {
				s.Size = until
			}
		}
		if !yield(s) {
			return false
		}
		at += uint32(s.Size >> b.shift)
	}
	return b.slackOf(r, device.Size(r.units)<<b.shift, yield)
}

// slackOf yields the bytes of a region beyond its blocks.
func (b *Engine) slackOf(r *region, used device.Size, yield func(Span) bool) bool {
	return r.size == used || yield(Span{
		Region: r.base, Addr: r.base.Add(used), Size: r.size - used, State: alloc.Slack, Class: alloc.NoClass,
	})
}

// heads finds the free blocks of a region by address.
type heads struct {
	at [mostClasses]uint32 // per class, where its next free block heads; units for none
}

func (b *Engine) heads(r *region) (s heads) {
	for c := range r.has.all {
		s.at[c] = b.next(r, c, 0)
	}
	return s
}

// from returns the first free block at or above a unit, or the end of the region and false.
func (s *heads) from(b *Engine, r *region, at uint32) (first node, ok bool) {
	first.at = r.units
	for c := range r.has.all {
		if s.at[c] < at {
			s.at[c] = b.next(r, c, at)
		}
		if s.at[c] < first.at {
			first, ok = node{s.at[c], c}, true
		}
	}
	return first, ok
}

// WalkFree yields the free blocks in search order: by class, smallest first, then by region in the
// order of choice, or region by region where the position decides. Kept direct regions come last,
// smallest first.
func (b *Engine) WalkFree(yield func(Span) bool) {
	if b.anywhere {
		b.walkByPlace(yield)
		return
	}
	for c := range b.some.all {
		for key := range b.store.all(&b.ranked[c]) {
			r := &b.regs[b.byRank[key&(b.stride-1)]]
			if !b.walkClass(r, c, yield) {
				return
			}
		}
	}
	b.walkKept(yield)
}

func (b *Engine) walkClass(r *region, class int, yield func(Span) bool) bool {
	if b.lists {
		o := &b.listed[r.slot]
		for at := o.lists[class].newest; at != 0; at = o.links[at-1].older {
			if !yield(b.freeSpan(r, node{at - 1, class})) {
				return false
			}
		}
		return true
	}
	for at := range b.all(r, class) {
		if !yield(b.freeSpan(r, node{at, class})) {
			return false
		}
	}
	return true
}

// walkByPlace is WalkFree where the position decides.
func (b *Engine) walkByPlace(yield func(Span) bool) {
	order := slices.DeleteFunc(slices.Clone(b.byRank), func(slot uint32) bool { return slot == gone })
	slices.SortFunc(order, func(x, y uint32) int { return cmp.Compare(b.key(&b.regs[x]), b.key(&b.regs[y])) })
	for _, slot := range order {
		r := &b.regs[slot]
		var found []node
		next := b.heads(r)
		for n, ok := next.from(b, r, 0); ok; n, ok = next.from(b, r, n.at+1) {
			found = append(found, n)
		}
		if b.high {
			slices.Reverse(found)
		}
		for _, n := range found {
			if !yield(b.freeSpan(r, n)) {
				return
			}
		}
	}
	b.walkKept(yield)
}

func (b *Engine) walkKept(yield func(Span) bool) {
	for _, slot := range b.kept {
		r := &b.regs[slot]
		if !yield(Span{Region: r.base, Addr: r.base, Size: r.direct, State: alloc.Free, Class: alloc.NoClass}) {
			return
		}
	}
}

func (b *Engine) freeSpan(r *region, n node) Span {
	return Span{
		Region: r.base, Addr: r.base.Add(device.Size(n.at) << b.shift), Size: device.Size(b.classes.size[n.class]) << b.shift,
		State: alloc.Free, Class: int32(n.class),
	}
}

// CapacitySpan returns the limits with which the engine would have made the same decisions so far.
func (b *Engine) CapacitySpan() device.Span { return b.pool.CapacitySpan() }
