package cells

import (
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/front"
	"github.com/vramyard/vramyard/kit/index"
)

// Engine is Bonwick's slab allocator without a source of its own: a [Parent] gives it slabs. It
// records the live slots and their requests, and computes the slot of an address.
//
// A call costs O(1), O(segments) if an empty segment steals, and O(log slabs) if the lowest address
// is selected. Nothing is allocated on the heap once warm.
type Engine struct {
	parent  Parent
	kinds   []kind
	stocks  []stock // of every segment in turn, by class
	slabs   []slab
	backs   []back      // of every slab
	used    device.Size // bytes of slots in use, cached ones included
	usable  device.Size // bytes of the slots of slabs with a used slot
	empties device.Size // bytes of slabs without a used slot

	classOf  []uint16 // class of a request, by its size in quanta, less one
	shift    uint8    // log2 of the quantum
	fifo     bool     // lists of slabs are queues
	lowest   bool     // heaps replace the lists
	steal    bool
	robin    bool
	segments uint32
	turn     uint32 // next segment, with robin
	keep     int32  // empty slabs that a stock keeps

	where  index.Atlas            // slabs by address; a label is the number of the slab, plus one
	spare  [bits.UintSize][]int32 // runs of unused records, by log2 of their length
	words  arena                  // free slots of slabs with more than 64
	notes  front.Ledger           // live slots with a stream, a tag or a large slack
	heaps  [][]int32              // of the partial slabs of every stock, with lowest
	taken  int                    // slabs held
	cached magazines
}

// kind is the record of a class, a cache line with the gaps.
type kind struct {
	slot    device.Size
	slab    device.Size
	align   device.Size // alignment of every slot
	slots   uint32
	step    uint32 // level per free slot, and level of no free slot, both with 16
	bias    uint32 // fractional bits and modulo 2^32; zero where all partly used slabs are alike
	inverse uint64 // of the odd factor of slot, modulo 2^64; see slotAt
	shift   uint8  // log2 of the other factor
	partial int32  // slabs with used and free slots
	empties int32  // slabs without a used slot
	wide    bool   // more than 64 slots
}

// slab is the part of a slab that calls need, in a cache line. A slab of more than slackUnit slots
// has as many records in a row as hold its slacks. Only the first of these has a base.
type slab struct {
	base       device.Addr
	free       uint64 // free slots, or the words of them with a free one
	next, prev int32  // in its list; prev is the place in the heap with lowest
	left       uint16 // free slots
	class      uint16
	slacks     [slackUnit]uint16
}

type back struct {
	handle  uint32 // the parent's
	words   uint32 // where its words are, if it has more than 64 slots
	segment uint32
}

// The slack of a live slot is its granted minus its requested bytes, and other slots have slack 0,
// with two exceptions.
const (
	slackNoted  = 1<<16 - 1 // the slot is live and its slack is in the notes
	slackCached = 1<<16 - 2 // the slot is in a magazine
)

// slackUnit is the number of slacks in a record: a cache line.
const slackUnit = 16

func (a *Engine) slackOf(slab int32, slot uint32) *uint16 {
	return &a.slabs[uint32(slab)+slot/slackUnit].slacks[slot%slackUnit]
}

// cell is a slot, in a slab.
type cell struct {
	slab int32
	slot uint32
}

// New returns an engine that holds nothing. It fails if a class has no slot or more than 4096 in a
// slab, if classes do not ascend, or if the selection is unknown.
func New(parent Parent, c Config) (*Engine, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	a := &Engine{
		parent: parent, shift: uint8(bits.TrailingZeros64(uint64(c.Quantum))),
		fifo: c.Selection == Fifo, lowest: c.Selection == Lowest,
		steal: c.Steal, robin: c.RoundRobin, segments: uint32(c.Segments), keep: int32(c.EmptySlabs),
	}
	a.where = index.NewAtlas(func(label uint32) (device.Addr, device.Size) {
		s := &a.slabs[label-1]
		return s.base, a.kinds[s.class].slab
	})
	for i, k := range c.Classes {
		slots := uint32(k.slots())
		own := kind{slot: k.Slot, slab: k.Slab, align: min(k.Slot&-k.Slot, k.Align), slots: slots, wide: slots > 64}
		own.shift = uint8(bits.TrailingZeros64(uint64(k.Slot)))
		own.inverse = inverse(uint64(k.Slot) >> own.shift)
		if c.Selection == Fullest || c.Selection == Emptiest || c.Selection == "" {
			own.step = levels << 16 / slots
			own.bias = -own.step
			if c.Selection == Emptiest { // its levels count used slots
				own.step, own.bias = -own.step, own.step*(slots-1)
			}
		}
		a.kinds = append(a.kinds, own)
		for device.Size(len(a.classOf))<<a.shift < k.Slot {
			a.classOf = append(a.classOf, uint16(i))
		}
	}
	a.stocks = make([]stock, c.Segments*len(a.kinds))
	for i := range a.stocks {
		a.stocks[i].clear()
	}
	if a.lowest {
		a.heaps = make([][]int32, len(a.stocks))
	}
	a.cached.init(c, len(a.stocks), len(a.kinds))
	return a, nil
}

// Classes returns the number of classes.
func (a *Engine) Classes() int { return len(a.kinds) }

// Slot returns the bytes that a request of a class is granted.
func (a *Engine) Slot(class int) device.Size { return a.kinds[class].slot }

// ClassOf returns the smallest class that serves n bytes, and false if n is 0 or above all classes.
func (a *Engine) ClassOf(n device.Size) (class int, ok bool) {
	units := (n - 1) >> (a.shift & 63) // of no bytes, more than there are
	if units >= device.Size(len(a.classOf)) {
		return 0, false
	}
	return int(a.classOf[units]), true
}

// ClassFor is ClassOf for slots at multiples of align, a power of two. It costs O(classes).
func (a *Engine) ClassFor(n, align device.Size) (class int, ok bool) {
	class, ok = a.ClassOf(n)
	for ok && a.kinds[class].align < align {
		class++
		ok = class < len(a.kinds)
	}
	return class, ok
}

// Segment returns the segment for a request of a stream. With RoundRobin it passes the turn on.
func (a *Engine) Segment(stream device.Stream) int {
	if a.segments == 1 { // inlined, because every call does this
		return 0
	}
	return a.segmentOf(stream)
}

func (a *Engine) segmentOf(stream device.Stream) int {
	if !a.robin {
		return int(uint64(stream) % uint64(a.segments))
	}
	n := a.turn
	if a.turn++; a.turn == a.segments {
		a.turn = 0
	}
	return int(n)
}

// Grab takes a slot of a class into use for a request, and reports whether there was one. It tries
// the magazines of the segment, its partly used slabs, its empty ones, a slab that the parent
// holds, other segments if it may steal, and last a slab for which the parent needs more memory.
// With more unset, as after [Engine.Drain] or [Engine.Shed], it tries neither magazines nor more
// memory.
//
// Precondition: class and segment exist, and slots of the class have the size of the request.
func (a *Engine) Grab(class, segment int, r *alloc.Request, more bool) (device.Addr, bool) {
	if a.cached.rounds != 0 && more {
		if c, ok := a.pop(class, segment); ok {
			return a.grant(c.slab, &a.kinds[class], c.slot, r), true
		}
	}
	n := a.stocks[segment*len(a.kinds)+class].first()
	if n == None {
		if n = a.refill(class, segment, more); n == None {
			return 0, false
		}
	}
	s, k := &a.slabs[n], &a.kinds[class]
	slot := uint32(bits.TrailingZeros64(s.free))
	if !k.wide {
		s.free &= s.free - 1
	} else {
		slot = a.takeWide(n, s, slot)
	}
	p := s.base.Add(device.Size(slot) * k.slot) // as grant does, without a call
	*a.slackOf(n, slot) = a.slackFor(k.slot-r.Size, p, r)
	a.used += k.slot
	left := uint32(s.left)
	s.left--
	if left == k.slots {
		a.becameUsed(n, s, k)
	}
	if before, level := k.level(left), k.level(left-1); level != before {
		a.move(n, s, k, before, level)
	}
	return p, true
}

// takeWide is Grab from a slab of more than 64 slots, in a word with a free slot.
func (a *Engine) takeWide(n int32, s *slab, word uint32) (slot uint32) {
	w := &a.words.all[a.backs[n].words+word]
	slot = word<<6 + uint32(bits.TrailingZeros64(*w))
	*w &= *w - 1
	if *w == 0 {
		s.free &^= 1 << word
	}
	return slot
}

// grant assigns a slot in use to a request and returns its address.
func (a *Engine) grant(n int32, k *kind, slot uint32, r *alloc.Request) device.Addr {
	p := a.slabs[n].base.Add(device.Size(slot) * k.slot)
	*a.slackOf(n, slot) = a.slackFor(k.slot-r.Size, p, r)
	return p
}

// slackFor returns the slack of a slot for a request that leaves beyond bytes of it unused.
func (a *Engine) slackFor(beyond device.Size, p device.Addr, r *alloc.Request) uint16 {
	if beyond < slackCached && uint64(r.Stream)|r.Tag == 0 {
		return uint16(beyond)
	}
	return a.note(p, r)
}

// note stores the request of a slot in the table of notes, because its slack cannot describe it,
// and returns the slack that marks such slots. It is separate so that slackFor is inlined.
//
//go:noinline
func (a *Engine) note(p device.Addr, r *alloc.Request) uint16 {
	a.notes.Add(p, front.LiveBlock{Requested: r.Size, Stream: r.Stream, Tag: r.Tag})
	return slackNoted
}

// inverse returns the inverse of an odd number modulo 2^64. Each step doubles the correct bits, of
// which n itself has three.
func inverse(n uint64) uint64 {
	x := n
	for range 5 {
		x *= 2 - n*x
	}
	return x
}

// slotAt returns the slot that starts at an address, or at least k.slots without one. The offset
// times the inverse of the odd factor of a slot, rotated by the other factor, is the quotient for
// multiples of a slot and larger than any quotient for other numbers (Hacker's Delight, 10-17). A
// division costs ten times as much.
func (k *kind) slotAt(s *slab, at device.Addr) uint64 {
	return bits.RotateLeft64(uint64(at-s.base)*k.inverse, -int(k.shift))
}

// Return returns a live slot to the magazines of its segment or to its slab. It returns an empty
// slab to the parent if the stock keeps enough. The results are requested and granted bytes, and
// false if no live slot starts at the address; then nothing changes.
func (a *Engine) Return(p device.Addr) (requested, granted device.Size, ok bool) {
	n := uint64(a.where.Get(p)) - 1
	if n >= uint64(len(a.slabs)) {
		return 0, 0, false
	}
	s := &a.slabs[n]
	k := &a.kinds[s.class]
	slot := k.slotAt(s, p)
	if slot >= uint64(k.slots) {
		return 0, 0, false
	}
	c := cell{int32(n), uint32(slot)}
	if k.wide && a.isFree(c) || !k.wide && s.free>>(slot&63)&1 != 0 {
		return 0, 0, false
	}
	slack := a.slackOf(c.slab, c.slot)
	requested = k.slot - device.Size(*slack)
	if *slack >= slackCached {
		if *slack == slackCached {
			return 0, 0, false
		}
		b, _ := a.notes.Take(p)
		requested = b.Requested
	}
	if a.cached.rounds == 0 || !a.push(c, s, slack) {
		a.put(c, s, k)
	}
	return requested, k.slot, true
}

func (a *Engine) isFree(c cell) bool {
	s := &a.slabs[c.slab]
	w := s.free
	if a.kinds[s.class].wide {
		w = a.words.all[a.backs[c.slab].words+c.slot>>6]
	}
	return w>>(c.slot&63)&1 != 0
}

// put gives slot c in use back to its slab s of class k.
func (a *Engine) put(c cell, s *slab, k *kind) {
	bit := uint64(1) << (c.slot & 63)
	if k.wide {
		s.free |= 1 << (c.slot >> 6)
		a.words.all[a.backs[c.slab].words+c.slot>>6] |= bit
	} else {
		s.free |= bit
	}
	a.used -= k.slot
	left := uint32(s.left)
	s.left++
	before, level := k.level(left), k.level(left+1)
	if left+1 == k.slots && a.becameEmpty(c.slab, s, k) {
		a.move(c.slab, s, k, before, levelFull) // this removes it from all lists
		a.detach(c.slab)
	} else if level != before {
		a.move(c.slab, s, k, before, level)
	}
}

// refill returns a slab with a free slot for a segment that has none, or None. The parent may
// reserve memory if more is set.
func (a *Engine) refill(class, segment int, more bool) int32 {
	if n := a.attach(class, segment, false); n != None {
		return n
	}
	if a.steal && a.segments > 1 {
		if n := a.foreign(class, segment); n != None {
			return n
		}
	}
	if !more {
		return None
	}
	return a.attach(class, segment, true)
}

// foreign returns a slab of another segment with a free slot, or None. A partly used slab stays in
// its segment, an empty one moves to the segment of the request.
func (a *Engine) foreign(class, segment int) int32 {
	own := &a.stocks[segment*len(a.kinds)+class]
	if a.kinds[class].partial > 0 {
		for i := 1; ; i++ {
			sh := &a.stocks[(segment+i)%int(a.segments)*len(a.kinds)+class]
			if n := sh.first(); n != None && sh.some != 1<<levelEmpty {
				return n
			}
		}
	}
	if a.kinds[class].empties == 0 {
		return None
	}
	for i := 1; ; i++ {
		sh := &a.stocks[(segment+i)%int(a.segments)*len(a.kinds)+class]
		n := sh.head[levelEmpty]
		if n == None {
			continue
		}
		a.take(sh, n, levelEmpty)
		sh.empties--
		a.backs[n].segment = uint32(segment)
		a.enter(own, n, levelEmpty, false)
		own.empties++
		return n
	}
}

// attach makes a piece of the parent an empty slab of a segment. It returns None if the parent has
// no piece.
func (a *Engine) attach(class, segment int, more bool) int32 {
	k := &a.kinds[class]
	log := k.records()
	n, fresh := int32(len(a.slabs)), true
	if again := a.spare[log]; len(again) > 0 {
		n, fresh = again[len(again)-1], false
	} else if len(a.slabs) > math.MaxInt32-1<<log {
		return None
	}
	piece, ok := a.parent.Take(class, n, more)
	if !ok {
		return None
	}
	if fresh {
		a.slabs = append(a.slabs, make([]slab, 1<<log)...)
		a.backs = append(a.backs, make([]back, 1<<log)...)
	} else {
		a.spare[log] = a.spare[log][:len(a.spare[log])-1]
	}
	s := &a.slabs[n]
	s.base, s.class, s.left, s.free = piece.Addr, uint16(class), uint16(k.slots), ^uint64(0)>>(64-min(k.slots, 64))
	a.backs[n] = back{handle: piece.Handle, segment: uint32(segment)}
	if k.wide {
		a.fill(n, k.slots)
	}
	a.where.Set(s.base, k.slab, uint32(n)+1)
	sh := &a.stocks[segment*len(a.kinds)+class]
	a.enter(sh, n, levelEmpty, false)
	sh.empties++
	k.empties++
	a.empties += k.slab
	a.taken++
	return n
}

// detach returns an empty slab that is in no list to the parent.
func (a *Engine) detach(n int32) {
	s := &a.slabs[n]
	k := &a.kinds[s.class]
	if k.wide {
		a.words.give(a.backs[n].words, (k.slots+63)>>6)
	}
	a.where.Clear(s.base, k.slab, uint32(n)+1)
	a.empties -= k.slab
	k.empties--
	a.taken--
	class, log, piece := int(s.class), k.records(), Piece{s.base, a.backs[n].handle}
	*s = slab{}
	a.spare[log] = append(a.spare[log], n)
	a.parent.Give(class, piece)
}

// Shed returns every empty slab to the parent. It reports their number. O(1) without empty slabs,
// otherwise O(segments * classes).
func (a *Engine) Shed() (n int) {
	if a.empties == 0 {
		return 0
	}
	for i := range a.stocks {
		sh := &a.stocks[i]
		for sh.empties > 0 {
			s := sh.head[levelEmpty]
			a.take(sh, s, levelEmpty)
			sh.empties--
			a.detach(s)
			n++
		}
	}
	return n
}

// records returns log2 of the number of records of a slab.
func (k *kind) records() int { return bits.Len32((k.slots - 1) / slackUnit) }

// fill gives a slab of more than 64 slots its words, all free.
func (a *Engine) fill(n int32, slots uint32) {
	words := (slots + 63) >> 6
	at := a.words.take(words)
	a.backs[n].words = at
	a.slabs[n].free = ^uint64(0) >> (64 - words)
	for i := range words {
		a.words.all[at+i] = ^uint64(0)
	}
	if rest := slots & 63; rest != 0 {
		a.words.all[at+words-1] = 1<<rest - 1
	}
}
