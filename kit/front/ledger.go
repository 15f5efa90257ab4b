package front

// [Ledger] is a table of live blocks by address. For each block it stores a word of the caller,
// with which a strategy finds its own record of a freed block.
//
// # Data structure
//
// A hash table of buckets of seven cells, one cache line each. A block is in the bucket of its hash
// or, if that is full, in the next bucket with an empty cell. Each bucket counts the blocks that
// overflowed it, and a search ends at the first bucket without overflow, as in F14 of Facebook's
// folly. A deletion moves nothing.
//
// A cell holds a start in 39 bits and the requested size in 32. The start counts multiples of 256
// bytes from an origin 64 TiB below the first block. 32 bits of it are in the cell. The other
// seven, mixed with a hash of the 32, are in the mark of the cell: a byte of a word that the cells
// share. So marks act as fingerprints, a few instructions find the cells of a mark as in Abseil's
// Swiss tables, and the match is exact. The eighth byte of the word is the count.
//
// The hash is multiplicative (Knuth, volume 3, section 6.4). The high word of its product with the
// number of buckets is the bucket, so that number need not be a power of two. The table grows by a
// quarter at four fifths full and never shrinks: a block takes 11 to 15 bytes, and nothing is
// allocated in steady state.
//
// Rare properties lie in columns that exist once a block needs them: words of up to 32 bits take 4
// bytes a cell; streams, tags, longer words, sizes from 4 GiB and other starts take 32.

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/kit/index"
)

const (
	golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, odd
	spread = 0x9E3779B1         // 2^32 / golden ratio, odd
	fold   = 23                 // shift of the folded bits, as in kit/index
	// quantumLog is log2 of the alignment of nearly every block: devices align regions to it.
	quantumLog = 8
	// A number has 32 bits in its cell and 7 in the mark; further bits are extra.
	lowBits  = 32
	markBits = 7
	fullBits = lowBits + markBits

	// cells of a bucket: each has 4 bytes of number, 4 of size and a mark. With the byte of the count
	// they fill a cache line.
	cells      = 7
	minBuckets = 2 // of the smallest table
)

// Masks of the marks of a bucket, a byte each.
const (
	ones    = 0x01010101010101
	tops    = ones << markBits // set in the mark of a cell that holds a block
	rests   = tops - ones
	onePass = 1 << (8 * cells) // one in the count
	// mostPassed is a saturated count. It is not decreased, because the true count may be higher.
	mostPassed = 255
)

// LiveBlock is the record of a live block.
type LiveBlock struct {
	Requested device.Size   // bytes requested
	Stream    device.Stream // stream of the request
	Tag       uint64        // label of the request
	Place     uint64        // the strategy's own record of the block; cheapest in 32 bits
}

// bucket holds up to seven blocks.
type bucket struct {
	// marks has a byte for each cell, zero for an empty one. The byte above them is the count of the
	// blocks that overflowed this bucket.
	marks     uint64
	low       [cells]uint32 // low bits of the numbers
	requested [cells]uint32 // lower halves of the requested sizes
}

// extra holds the properties of a block that few callers set.
type extra struct {
	tag       uint64
	stream    device.Stream
	requested uint32 // upper half
	place     uint32 // upper half
	number    uint32 // bits beyond fullBits
}

// Ledger is a set of live blocks. The zero value is empty and ready.
type Ledger struct {
	buckets []bucket
	origin  uint64   // subtracted from every number
	places  []uint32 // by cell: lower half of its place; nil until one is not zero
	extras  []extra  // by cell, zero for an empty one; nil until one is not zero
	n       int
	room    int  // number of blocks at which it grows
	columns bool // places or extras exist
}

// Len returns the number of live blocks.
func (t *Ledger) Len() int { return t.n }

// Bytes returns the host memory of the table, unused capacity included.
func (t *Ledger) Bytes() device.Size {
	return index.BytesOf(t.buckets) + index.BytesOf(t.places) + index.BytesOf(t.extras)
}

// home returns the bucket in which the search for a begins.
func (t *Ledger) home(a device.Addr) uint64 {
	home, _ := bits.Mul64(uint64(a^a>>fold)*golden, uint64(len(t.buckets)))
	return home
}

func (t *Ledger) next(b uint64) uint64 {
	if b++; b == uint64(len(t.buckets)) {
		return 0
	}
	return b
}

// numberOf returns the number of an address: its multiple of the quantum, counted from the origin.
// The remainder of a misaligned address is in the bits above.
func (t *Ledger) numberOf(a device.Addr) uint64 {
	return bits.RotateLeft64(uint64(a), -quantumLog) - t.origin
}

func (t *Ledger) addrOf(number uint64) device.Addr {
	return device.Addr(bits.RotateLeft64(number+t.origin, quantumLog))
}

// markOf returns the mark of a number: its high bits, mixed with a hash of the low ones, so that
// the blocks of one bucket have different marks.
func markOf(number uint64) uint64 {
	return 1<<markBits | (number>>lowBits^uint64(uint32(number)*spread>>(lowBits-markBits)))&(1<<markBits-1)
}

// like returns a bit in the byte of each cell with a mark. It is exact: no carry passes from one
// byte to the next.
func (k *bucket) like(mark uint64) uint64 {
	differ := k.marks ^ mark*ones
	return ^(differ&rests + rests | differ) & tops
}

// empty returns a bit in the byte of each empty cell.
func (k *bucket) empty() uint64 { return ^k.marks & tops }

// cellOf returns the cell of the lowest bit of like or empty, or at least cells if there are no
// bits.
func cellOf(found uint64) uint { return uint(bits.TrailingZeros64(found)) >> 3 }

// find returns the cell of a number in a bucket, or at least cells.
func (t *Ledger) find(at, number uint64) uint {
	k := &t.buckets[at]
	for found := k.like(markOf(number)); found != 0; found &= found - 1 {
		i := cellOf(found)
		if k.low[i] == uint32(number) &&
			(t.extras == nil || uint64(t.extras[at*cells+uint64(i)].number) == number>>fullBits) {
			return i
		}
	}
	return cells
}

// search returns the bucket and the cell of the block that starts at a. It begins in the given
// bucket. The cell is at least cells if there is no such block.
func (t *Ledger) search(at uint64, a device.Addr) (uint64, uint) {
	number := t.numberOf(a)
	if len(t.buckets) == 0 || number>>fullBits != 0 && t.extras == nil {
		return at, cells
	}
	for range len(t.buckets) { // in a small table every bucket may have overflowed
		i := t.find(at, number)
		if i < cells || t.buckets[at].marks < onePass {
			return at, i
		}
		at = t.next(at)
	}
	return at, cells
}

// Add adds the block that starts at a. O(1) expected; it allocates only beyond the highest number
// of live blocks so far.
//
// Precondition: a is not zero and no block in the table starts there.
func (t *Ledger) Add(a device.Addr, b LiveBlock) {
	number := t.numberOf(a)
	if t.n < t.room && !t.columns && number>>fullBits == 0 && b.plain() {
		k := &t.buckets[t.home(a)]
		if free := k.empty(); free != 0 {
			k.set(cellOf(free), number, b.Requested)
			t.n++
			return
		}
	}
	t.addFar(a, b) // the last call, so b is not spilled across another one
}

// addFar is Add if the table or the bucket is full, or if the block has properties that a cell does
// not hold.
func (t *Ledger) addFar(a device.Addr, b LiveBlock) {
	if t.n >= t.room {
		t.grow(a)
	}
	number := t.numberOf(a)
	at := t.home(a)
	for t.buckets[at].empty() == 0 {
		k := &t.buckets[at]
		if k.marks < mostPassed*onePass {
			k.marks += onePass
		}
		at = t.next(at)
	}
	i := cellOf(t.buckets[at].empty())
	t.buckets[at].set(i, number, b.Requested)
	if t.columns || number>>fullBits != 0 || !b.plain() {
		t.attach(at*cells+uint64(i), number, b)
	}
	t.n++
}

// plain reports whether a cell holds all of a block.
func (b *LiveBlock) plain() bool { return b.Tag|uint64(b.Stream)|uint64(b.Requested)>>32|b.Place == 0 }

func (k *bucket) set(i uint, number uint64, requested device.Size) {
	k.marks |= markOf(number) << (i << 3 & 63)
	k.low[i], k.requested[i] = uint32(number), uint32(requested)
}

// attach stores the properties of a block that its cell does not hold.
func (t *Ledger) attach(cell, number uint64, b LiveBlock) {
	e := extra{b.Tag, b.Stream, uint32(b.Requested >> 32), uint32(b.Place >> 32), uint32(number >> fullBits)}
	if t.places == nil && uint32(b.Place) != 0 {
		t.places = make([]uint32, len(t.buckets)*cells)
	}
	if t.extras == nil && e != (extra{}) {
		t.extras = make([]extra, len(t.buckets)*cells)
	}
	if t.places != nil {
		t.places[cell] = uint32(b.Place)
	}
	if t.extras != nil {
		t.extras[cell] = e
	}
	t.columns = true
}

func (t *Ledger) block(at uint64, i uint) LiveBlock {
	b, cell := LiveBlock{Requested: device.Size(t.buckets[at].requested[i])}, at*cells+uint64(i)
	if t.places != nil {
		b.Place = uint64(t.places[cell])
	}
	if t.extras != nil {
		e := &t.extras[cell]
		b.Tag, b.Stream = e.tag, e.stream
		b.Requested |= device.Size(e.requested) << 32
		b.Place |= uint64(e.place) << 32
	}
	return b
}

// Get returns the block that starts at a, and whether there is one. O(1) expected.
func (t *Ledger) Get(a device.Addr) (LiveBlock, bool) {
	at, i := t.search(t.home(a), a)
	if i >= cells {
		return LiveBlock{}, false
	}
	return t.block(at, i), true
}

// Take removes the block that starts at a and returns it, and whether there was one.
// O(1) expected.
func (t *Ledger) Take(a device.Addr) (LiveBlock, bool) {
	number, home := t.numberOf(a), t.home(a)
	if home < uint64(len(t.buckets)) && !t.columns && number>>fullBits == 0 {
		k := &t.buckets[home]
		if i := cellOf(k.like(markOf(number))); i < cells && k.low[i] == uint32(number) {
			b := LiveBlock{Requested: device.Size(k.requested[i])}
			t.clear(k, i)
			return b, true
		}
	}
	return t.takeFar(home, a)
}

// takeFar is Take if the block may be in a later bucket, or has properties that a cell does not
// hold.
func (t *Ledger) takeFar(home uint64, a device.Addr) (LiveBlock, bool) {
	at, i := t.search(home, a)
	if i >= cells {
		return LiveBlock{}, false
	}
	b := t.block(at, i)
	t.clear(&t.buckets[at], i)
	if t.extras != nil {
		t.extras[at*cells+uint64(i)] = extra{}
	}
	for ; home != at; home = t.next(home) {
		if k := &t.buckets[home]; k.marks < mostPassed*onePass {
			k.marks -= onePass
		}
	}
	return b, true
}

func (t *Ledger) clear(k *bucket, i uint) {
	k.marks &^= 0xff << (i << 3 & 63)
	t.n--
}

// Range yields every live block and its start, in arbitrary order. It is for checks that visit all
// blocks, never for choosing one. The table must not change during the iteration.
func (t *Ledger) Range(yield func(device.Addr, LiveBlock) bool) {
	for at := range t.buckets {
		k := &t.buckets[at]
		for used := k.marks & tops; used != 0; used &= used - 1 {
			i := cellOf(used)
			number := uint64(k.low[i])
			number |= (k.marks>>(i<<3) ^ markOf(number)) & (1<<markBits - 1) << lowBits
			if t.extras != nil {
				number |= uint64(t.extras[at*cells+int(i)].number) << fullBits
			}
			if !yield(t.addrOf(number), t.block(uint64(at), i)) {
				return
			}
		}
	}
}

// grow enlarges the table by a quarter. The first block determines the origin: fullBits reach as
// far below that block as above it.
func (t *Ledger) grow(first device.Addr) {
	if len(t.buckets) == 0 {
		t.origin = uint64(first)>>quantumLog - 1<<(fullBits-1)
	}
	buckets := max(minBuckets, len(t.buckets)+(len(t.buckets)+3)/4)
	wide := Ledger{
		buckets: make([]bucket, buckets), origin: t.origin, columns: t.columns, room: buckets * cells * 4 / 5,
	}
	if t.places != nil {
		wide.places = make([]uint32, buckets*cells)
	}
	if t.extras != nil {
		wide.extras = make([]extra, buckets*cells)
	}
	for a, b := range t.Range {
		wide.Add(a, b)
	}
	*t = wide
}
