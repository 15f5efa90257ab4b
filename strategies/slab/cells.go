package slab

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

// The values of Config.Selection: which slab with a free slot a request is served from.
const (
	Fullest  = "fullest"  // the one with the fewest free slots, so that the others drain
	Emptiest = "emptiest" // the one with the most
	Lifo     = "lifo"     // the one that got a free slot last
	Fifo     = "fifo"     // the one that has had a free slot for the longest time
	Lowest   = "lowest"   // the one at the lowest address
)

// mostSlots is how many slots a slab has at most: a word that sums up 64 words of 64 bits.
// Finding a free slot then costs two words at most.
const mostSlots = 64 * 64

// maxClasses bounds the classes, each of which has a record in every segment.
const maxClasses = 1 << 12

// Class is one size class of [Cells]. Sizes are bytes.
type Class struct {
	Slot  device.Size // of a slot, which is what a request of the class is granted
	Slab  device.Size // of a slab, which is what the parent gives for it
	Align device.Size // of the start of every slab of the class, a power of two
}

// slots returns how many slots a slab of the class has.
func (k Class) slots() device.Size { return k.Slab / k.Slot }

// Piece is the memory of one slab.
type Piece struct {
	Addr   device.Addr // first byte, at a multiple of the class's Align
	Handle uint32      // of the parent's, who gets it back with the piece
}

// Parent gives [Cells] the memory of slabs.
type Parent interface {
	// Take returns Class.Slab bytes for a slab of the class, and whether there are any. The
	// slab is known by its number from then on. Unless more is set the parent gives only
	// what it holds; otherwise it may ask for memory where it has its own from, and
	// remembers the error of that for whoever composes it with the cells.
	Take(class int, slab int32, more bool) (Piece, bool)
	// Give takes back the piece of a slab of a class.
	Give(class int, p Piece)
}

// CellsConfig describes [Cells].
type CellsConfig struct {
	Quantum    device.Size // sizes of slots are multiples of it; a power of two
	Classes    []Class     // ascending by Slot
	Selection  string      // which slab serves first; one of the selections, Fullest if empty
	EmptySlabs int         // slabs without a used slot that each class of a segment keeps
	Segments   int         // parts that share nothing, unless Steal is set; at least 1
	RoundRobin bool        // segments take turns instead of belonging to streams
	Steal      bool        // a segment may use what another has, before a new region is asked for
	StealEarly bool        // and even before it attaches a slab that the parent holds
	Rounds     int         // slots in a magazine; 0 for no magazines
	Depot      int         // full magazines that a class keeps beside those in use
	Interval   int         // calls after which the depot gives back what it did not need
}

// Cells are size classes of equal slots: Bonwick's slab allocator without a table of live
// blocks, and without a source of its own. It is the part that other strategies compose
// with a [Parent] below and a table of live blocks above: what Grab tells as the place of
// a slot, Return wants back, and who calls them sees to it that nothing is returned twice.
//
// A call costs O(1), whatever the number of slabs; O(segments) if a segment that has
// nothing steals, O(log slabs) if the lowest address is selected. Nothing is allocated on
// the heap once as many slabs have been held as ever will be.
type Cells struct {
	parent  Parent
	kinds   []kind
	stocks  []stock // of every segment in turn, by class
	slabs   []slab
	used    device.Size // bytes of slots in use, cached ones included
	usable  device.Size // bytes of the slots of slabs in which one is in use
	empties device.Size // bytes of slabs in which none is

	classOf  []uint16 // class of a request, by its size in quanta, less one
	shift    uint8    // log2 of the quantum
	emptiest bool     // levels count what is used, not what is free
	fifo     bool     // slabs queue up
	lowest   bool     // heaps stand in for lists
	steal    bool
	early    bool // steal before a slab is attached
	robin    bool
	segments uint32
	turn     uint32 // of the segments, with robin
	keep     int32  // empty slabs that a stock keeps

	heaps  [][]int32 // of the partial slabs of every stock, with lowest
	words  []uint64  // free slots of slabs with more than 64; word 0 is not used
	runs   [7]uint32 // by log2 of their length, runs of words that no slab has; 0 for none
	spare  int32     // record that no slab has, linked by next
	taken  int       // slabs held
	cached magazines
}

// kind is what is known of a class.
type kind struct {
	slot    device.Size
	slab    device.Size
	align   device.Size // that every slot has
	slots   uint32
	scale   uint32 // free slots to level, with 16 fractional bits
	inverse uint64 // of the odd factor of slot, modulo 2^64; see slotAt
	shift   uint8  // log2 of the other factor
	partial int32  // slabs with used and free slots
	empties int32  // slabs without a used one
	wide    bool   // more than 64 slots
}

// slab is one slab. Records are used again.
type slab struct {
	base       device.Addr
	free       uint64 // free slots, or the words of them with a free one
	words      uint32 // where its words are, if it has more than 64 slots
	handle     uint32 // the parent's
	next, prev int32  // in its list; prev is the place in the heap with lowest
	left       uint16 // free slots
	class      uint16
	segment    uint16
	level      uint8
	held       bool // the record is of a slab
}

// PlaceBits is how many low bits of a place are used. The others are zero, and whoever
// composes Cells may put marks of its own there as long as Return does not see them.
const PlaceBits = 31

// Cell is a slot in use.
type Cell struct {
	Addr  device.Addr // first byte
	Place uint64      // number of the slab
}

// NewCells returns cells that hold nothing yet. It fails if a class has no slot or more
// than 4096 in a slab, if classes do not ascend, or if the selection is unknown.
func NewCells(parent Parent, c CellsConfig) (*Cells, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	a := &Cells{
		parent: parent, shift: uint8(bits.TrailingZeros64(uint64(c.Quantum))),
		emptiest: c.Selection == Emptiest, fifo: c.Selection == Fifo, lowest: c.Selection == Lowest,
		steal: c.Steal || c.StealEarly, early: c.StealEarly, robin: c.RoundRobin, segments: uint32(c.Segments), keep: int32(c.EmptySlabs),
		spare: none, words: make([]uint64, 1),
	}
	for i, k := range c.Classes {
		slots := uint32(k.slots())
		own := kind{slot: k.Slot, slab: k.Slab, align: min(k.Slot&-k.Slot, k.Align), slots: slots, wide: slots > 64}
		own.shift = uint8(bits.TrailingZeros64(uint64(k.Slot)))
		own.inverse = inverse(uint64(k.Slot) >> own.shift)
		if c.Selection == Fullest || c.Selection == Emptiest || c.Selection == "" {
			own.scale = levels << 16 / slots
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

// check returns an error that names the first bad field.
func (c CellsConfig) check() error {
	switch {
	case !device.IsPowerOfTwo(c.Quantum):
		return fmt.Errorf("slab: quantum %d: want a power of two", uint64(c.Quantum))
	case len(c.Classes) == 0 || len(c.Classes) > maxClasses:
		return fmt.Errorf("slab: classes: %d of them: want 1 to %d", len(c.Classes), maxClasses)
	case c.Segments < 1 || c.Segments > mostSegments:
		return fmt.Errorf("slab: segments %d: want 1 to %d", c.Segments, mostSegments)
	}
	for i, k := range c.Classes {
		switch {
		case k.Slot == 0 || k.Slot%c.Quantum != 0 || i > 0 && k.Slot <= c.Classes[i-1].Slot:
			return fmt.Errorf("slab: class of %d bytes: want ascending multiples of %d", uint64(k.Slot), uint64(c.Quantum))
		case k.Slot > k.Slab || k.slots() > mostSlots:
			return fmt.Errorf("slab: class of %d bytes: want 1 to %d slots in %d bytes", uint64(k.Slot), mostSlots, uint64(k.Slab))
		}
	}
	switch c.Selection {
	case "", Fullest, Emptiest, Lifo, Fifo, Lowest:
		return nil
	}
	return fmt.Errorf("slab: selection %q: want %q, %q, %q, %q or %q", c.Selection, Fullest, Emptiest, Lifo, Fifo, Lowest)
}

// mostSegments bounds the segments, whose stocks are made at once.
const mostSegments = 1 << 12

// Classes returns how many classes there are.
func (a *Cells) Classes() int { return len(a.kinds) }

// Slot returns the bytes that a request of a class is granted.
func (a *Cells) Slot(class int) device.Size { return a.kinds[class].slot }

// ClassOf returns the smallest class that serves n bytes, and whether there is one. There
// is none for no bytes.
func (a *Cells) ClassOf(n device.Size) (class int, ok bool) {
	units := (n - 1) >> a.shift // of no bytes, more than there are
	if planted.Enabled && planted.Is("cells/next-class-too-late") {
		units = (max(n, 2) - 2) >> a.shift
	}
	if units >= device.Size(len(a.classOf)) {
		return 0, false
	}
	return int(a.classOf[units]), true
}

// ClassFor is ClassOf for slots that start at multiples of align, a power of two. It costs
// O(classes).
func (a *Cells) ClassFor(n, align device.Size) (class int, ok bool) {
	class, ok = a.ClassOf(n)
	for ok && a.kinds[class].align < align {
		class++
		ok = class < len(a.kinds)
	}
	return class, ok
}

// Segment returns the segment that a request of a stream goes to. With RoundRobin it
// passes the turn on.
func (a *Cells) Segment(stream device.Stream) int {
	if a.segments == 1 { // inlined, because it stands in every call
		return 0
	}
	return a.segmentOf(stream)
}

// segmentOf is Segment where there are several.
func (a *Cells) segmentOf(stream device.Stream) int {
	if !a.robin {
		return int(uint64(stream) % uint64(a.segments))
	}
	n := a.turn
	if a.turn++; a.turn == a.segments {
		a.turn = 0
	}
	return int(n)
}

// Grab takes a slot of a class into use, and reports whether there was one. The order is:
// the magazines of the segment, its slabs that are partly used, those that are empty, a
// slab that the parent holds; if it may steal, what other segments have, which StealEarly
// puts before that; and only then a slab for which the parent needs more memory.
//
// Precondition: the class is below Classes, the segment below the number of segments.
func (a *Cells) Grab(class, segment int) (Cell, bool) {
	if a.cached.rounds != 0 {
		if cell, ok := a.pop(class, segment); ok {
			return cell, true
		}
	}
	n := a.stocks[segment*len(a.kinds)+class].first()
	if n == none {
		if n = a.refill(class, segment, true); n == none {
			return Cell{}, false
		}
	}
	return a.cut(n), true
}

// GrabHeld is Grab for one more try after [Cells.Drain] or [Cells.Shed]: it looks neither
// into magazines, which have nothing, nor lets the parent ask for more memory.
func (a *Cells) GrabHeld(class, segment int) (Cell, bool) {
	n := a.stocks[segment*len(a.kinds)+class].first()
	if n == none {
		if n = a.refill(class, segment, false); n == none {
			return Cell{}, false
		}
	}
	return a.cut(n), true
}

// cut takes the lowest free slot of a slab into use.
//
// Precondition: the slab has one.
func (a *Cells) cut(n int32) Cell {
	s := &a.slabs[n]
	k := &a.kinds[s.class]
	slot := uint32(bits.TrailingZeros64(s.free))
	if !k.wide {
		s.free &= s.free - 1
	} else {
		w := &a.words[s.words+slot]
		low := uint32(bits.TrailingZeros64(*w))
		*w &= *w - 1
		if *w == 0 {
			s.free &^= 1 << slot
		}
		slot = slot<<6 + low
	}
	a.used += k.slot
	s.left--
	if s.left == 0 || uint32(s.left)+1 == k.slots {
		a.filled(n, s, k)
	} else if level := a.level(k, s.left); level != s.level {
		a.move(n, s, level)
	}
	return Cell{Addr: s.base.Add(device.Size(slot) * k.slot), Place: uint64(n)}
}

// inverse returns the number that n, an odd one, times is 1 modulo 2^64. Each step doubles the
// bits that are right, of which n itself has three.
func inverse(n uint64) uint64 {
	x := n
	for range 5 {
		x *= 2 - n*x
	}
	return x
}

// slotAt returns the slot of a slab that starts at an address. The offset is a multiple of the
// size of a slot, and so the quotient is a product by its inverse: a division costs ten times
// as much.
//
// Precondition: one does.
func (k *kind) slotAt(s *slab, at device.Addr) uint32 {
	return uint32(uint64(at.Sub(s.base)) >> k.shift * k.inverse)
}

// Return gives a slot back: to the magazines of its segment, or else to its slab, which
// goes back to the parent if it is empty and enough of its kind are kept. It returns the bytes
// of the slot.
//
// Precondition: the cell is what Grab returned, and was not returned since.
func (a *Cells) Return(cell Cell) device.Size {
	s := &a.slabs[cell.Place]
	k := &a.kinds[s.class]
	if a.cached.rounds == 0 || !a.push(cell) {
		a.put(cell, s, k)
	}
	return k.slot
}

// Granted returns the bytes of a slot in use, from its place.
func (a *Cells) Granted(place uint64) device.Size { return a.kinds[a.slabs[place].class].slot }

// put gives a slot back to its slab, of which s and k are the record and the class.
func (a *Cells) put(cell Cell, s *slab, k *kind) {
	n := int32(cell.Place)
	slot := k.slotAt(s, cell.Addr)
	w := &s.free
	if k.wide {
		s.free |= 1 << (slot >> 6)
		w = &a.words[s.words+slot>>6]
	}
	bit := uint64(1) << (slot & 63)
	if *w&bit != 0 {
		panic(fmt.Sprintf("slab: invariant C1 (a slot is free or used): slot %d of slab %d is returned twice", slot, n))
	}
	if !planted.Enabled || !planted.Is("cells/bit-not-set") {
		*w |= bit
	}
	if !planted.Enabled || !planted.Is("cells/used-not-lowered") {
		a.used -= k.slot
	}
	s.left++
	if s.left == 1 || uint32(s.left) == k.slots {
		a.drained(n, s, k)
	} else if level := a.level(k, s.left); level != s.level {
		a.move(n, s, level)
	}
}

// refill returns a slab with a free slot for a segment that has no partial one, none if
// there is nothing anywhere. The parent asks for memory only if more is set.
func (a *Cells) refill(class, segment int, more bool) int32 {
	if n := a.stocks[segment*len(a.kinds)+class].empty; n != none {
		return n
	}
	if !a.early {
		if n := a.attach(class, segment, false); n != none {
			return n
		}
	}
	if a.steal && a.segments > 1 {
		if n := a.foreign(class, segment); n != none {
			return n
		}
	}
	if a.early {
		if n := a.attach(class, segment, false); n != none {
			return n
		}
	}
	if !more {
		return none
	}
	return a.attach(class, segment, true)
}

// foreign returns a slab with a free slot that another segment has: a partial one of the
// next segment that has one, which stays where it is, or else an empty one, which changes
// over. It is none if there is neither.
func (a *Cells) foreign(class, segment int) int32 {
	if a.kinds[class].partial > 0 {
		for i := 1; ; i++ {
			sh := &a.stocks[(segment+i)%int(a.segments)*len(a.kinds)+class]
			if n := sh.first(); n != none {
				return n
			}
		}
	}
	if a.kinds[class].empties == 0 {
		return none
	}
	for i := 1; ; i++ {
		sh := &a.stocks[(segment+i)%int(a.segments)*len(a.kinds)+class]
		n := sh.empty
		if n == none {
			continue
		}
		a.unlink(&sh.empty, n)
		sh.empties--
		if !planted.Enabled || !planted.Is("cells/segment-kept") {
			a.slabs[n].segment = uint16(segment)
		}
		own := &a.stocks[segment*len(a.kinds)+class]
		a.link(&own.empty, n, false)
		own.empties++
		return n
	}
}

// attach makes a slab of a piece of the parent's and puts it among the empty ones of a
// segment. It returns none if the parent has no piece.
func (a *Cells) attach(class, segment int, more bool) int32 {
	n := a.spare
	if n == none {
		if len(a.slabs) == math.MaxInt32 {
			return none
		}
		n = int32(len(a.slabs))
	}
	piece, ok := a.parent.Take(class, n, more)
	if !ok {
		return none
	}
	if n == a.spare {
		a.spare = a.slabs[n].next
	} else {
		a.slabs = append(a.slabs, slab{})
	}
	k := &a.kinds[class]
	s := &a.slabs[n]
	*s = slab{
		base: piece.Addr, handle: piece.Handle, class: uint16(class), segment: uint16(segment),
		left: uint16(k.slots), free: ^uint64(0) >> (64 - min(k.slots, 64)), held: true,
	}
	if k.wide {
		a.fill(s, k.slots)
	}
	sh := &a.stocks[segment*len(a.kinds)+class]
	a.link(&sh.empty, n, false)
	sh.empties++
	k.empties++
	a.empties += k.slab
	a.taken++
	return n
}

// detach gives an empty slab that is in no list back to the parent.
func (a *Cells) detach(n int32) {
	s := &a.slabs[n]
	k := &a.kinds[s.class]
	if k.wide {
		a.freeRun(s.words, k.slots)
	}
	a.empties -= k.slab
	k.empties--
	a.taken--
	class, piece := int(s.class), Piece{s.base, s.handle}
	*s = slab{next: a.spare}
	a.spare = n
	a.parent.Give(class, piece)
}

// Shed gives every slab without a used slot back to the parent and returns how many there
// were. It costs O(segments * classes) unless there are none.
func (a *Cells) Shed() (n int) {
	if a.empties == 0 {
		return 0
	}
	for i := range a.stocks {
		sh := &a.stocks[i]
		for sh.empty != none {
			s := sh.empty
			a.unlink(&sh.empty, s)
			sh.empties--
			a.detach(s)
			n++
		}
	}
	return n
}

// logOf returns the log2 of the length of the run of words for a slab of many slots.
func logOf(slots uint32) int { return bits.Len32((slots+63)>>6 - 1) }

// fill gives a slab of many slots its words, all of its slots free.
func (a *Cells) fill(s *slab, slots uint32) {
	log := logOf(slots)
	at := a.runs[log]
	if at != 0 {
		a.runs[log] = uint32(a.words[at])
	} else {
		at = uint32(len(a.words))
		for range 1 << log {
			a.words = append(a.words, 0)
		}
	}
	s.words = at
	n := (slots + 63) >> 6
	s.free = ^uint64(0) >> (64 - n)
	for i := range n {
		a.words[at+i] = ^uint64(0)
	}
	if rest := slots & 63; rest != 0 {
		a.words[at+n-1] = 1<<rest - 1
	}
}

// freeRun takes back the words of a slab of many slots.
func (a *Cells) freeRun(at, slots uint32) {
	log := logOf(slots)
	a.words[at] = uint64(a.runs[log])
	a.runs[log] = at
}
