// Package ledger is a table of live blocks, kept by address.
//
// It answers the one question that stands before every free: does a live block start
// here, and what was it? The answer gives the caller back a word of its own, so that a
// strategy finds the tree node or the slab chunk of a block without a search over its
// regions.
//
// # Data structure
//
// A hash table of buckets of four cells, 64 bytes each, which is one cache line: the starts of
// four blocks, then what is known of them. A block is in the bucket that its address hashes to
// or, where that is full, in the next one with an empty cell; every bucket counts the blocks
// that passed it by so, and a search ends at the first bucket that none did (as in F14 of
// Facebook's folly). So a search reads one line nearly always, and compares four starts without
// a branch that could be mispredicted, and a deletion empties a cell and moves nothing.
//
// The hash is multiplicative (Knuth, volume 3, section 6.4); its upper half times the number of
// buckets is the bucket, so that this number need be no power of two. The table grows by a half
// at two thirds full and never shrinks: a block takes 24 to 37 bytes, and in steady state
// nothing is allocated. (At four fifths a block takes 20 to 31, and a pair of calls of the slab
// with 1000 live blocks 102 ns instead of 84, for full buckets are mispredicted ones; at one half
// 33 to 49 bytes and 81 ns.)
//
// Streams and tags lie in a column beside the cells, as do upper halves of sizes of 4 GiB and
// more and of words that do not fit 32 bits: 24 bytes for each cell, from the first block on
// that has any of these. Most callers have none.
package ledger

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

const (
	golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, odd
	fold   = 23                 // bits by which an address is shifted to be folded, as in addrmap
	// cells of a bucket: with starts of 8 bytes and 8 bytes of what is known they fill a line.
	cells      = 4
	minBuckets = 2 // of the smallest table

	bucketBytes = 64
	extraBytes  = 24
)

// Block is what is remembered of a live block.
type Block struct {
	Requested device.Size   // bytes asked for
	Stream    device.Stream // stream of the request
	Tag       uint64        // label of the request
	Place     uint64        // where the block is, in the terms of the strategy that keeps the table; of 32 bits at best
}

// bucket holds up to four blocks. No block starts at address zero, so that a zero start means
// an empty cell.
type bucket struct {
	start     [cells]device.Addr
	requested [cells]uint32 // lower halves
	place     [cells]uint32 // lower halves
}

// extra is what few callers attach to a block.
type extra struct {
	tag       uint64
	stream    device.Stream
	requested uint32 // upper half
	place     uint32 // upper half
}

// Table is a set of live blocks. The zero Table is empty and ready.
type Table struct {
	buckets []bucket
	passed  []uint8 // of each bucket, blocks that had to go on from there; mostPassed stays
	extras  []extra // of each cell, zero where it is empty; nil until one is not zero
	n       int
	room    int // blocks before it grows
}

// mostPassed is a count that is not kept any more, for it may be more.
const mostPassed = 255

// Len returns the number of live blocks.
func (t *Table) Len() int { return t.n }

// Bytes returns the host memory of the table, unused capacity included.
func (t *Table) Bytes() device.Size {
	return device.Size(cap(t.buckets))*bucketBytes + device.Size(cap(t.passed)) + device.Size(cap(t.extras))*extraBytes
}

// home returns the bucket in which the search for a begins.
func (t *Table) home(a device.Addr) uint64 {
	home, _ := bits.Mul64(uint64(a^a>>fold)*golden, uint64(len(t.buckets)))
	return home
}

// next returns the bucket after b.
func (t *Table) next(b uint64) uint64 {
	if b++; b == uint64(len(t.buckets)) {
		return 0
	}
	return b
}

// find returns the cell of the block that starts at a, of zero an empty one, and cells or more
// if there is none. Comparisons become bits, for nobody could predict which of them holds.
func (k *bucket) find(a device.Addr) uint {
	at := bit(k.start[0] == a) | bit(k.start[1] == a)<<1 | bit(k.start[2] == a)<<2 | bit(k.start[3] == a)<<3
	return uint(bits.TrailingZeros8(at))
}

// bit returns 1 for true. The compiler makes it no branch.
func bit(yes bool) (b uint8) {
	if yes {
		b = 1
	}
	return b
}

// search returns the cell of the block that starts at a, which is not in the bucket that it
// belongs to, and the bucket of that. The cell is cells or more if there is no such block.
func (t *Table) search(at uint64, a device.Addr) (uint64, uint) {
	for range len(t.buckets) { // in a small table every bucket may have been passed
		if t.passed[at] == 0 {
			break
		}
		at = t.next(at)
		if i := t.buckets[at].find(a); i < cells {
			return at, i
		}
	}
	return at, cells
}

// Add enters the block that starts at a. O(1) expected; it allocates only when more
// blocks live than ever before.
//
// Precondition: a is not zero and no block in the table starts there.
func (t *Table) Add(a device.Addr, b Block) {
	if t.n < t.room && t.extras == nil && b.plain() {
		k := &t.buckets[t.home(a)]
		if i := k.find(0); i < cells {
			k.set(i, a, b)
			t.n++
			return
		}
	}
	t.addFar(a, b) // last, so that nothing of b is saved across a call above
}

// addFar is Add where the table is full, the bucket is, or there is more than cells hold.
func (t *Table) addFar(a device.Addr, b Block) {
	if t.n >= t.room {
		t.grow()
	}
	at := t.home(a)
	i := t.buckets[at].find(0)
	if i >= cells {
		at, i = t.pass(at)
	}
	t.buckets[at].set(i, a, b)
	if t.extras != nil || !b.plain() {
		t.attach(at*cells+uint64(i), extra{b.Tag, b.Stream, uint32(b.Requested >> 32), uint32(b.Place >> 32)})
	}
	t.n++
}

// plain reports whether a cell holds all of a block.
func (b *Block) plain() bool {
	return b.Tag|uint64(b.Stream)|(uint64(b.Requested)|b.Place)>>32 == 0
}

// set makes a cell that of a block which starts at a.
func (k *bucket) set(i uint, a device.Addr, b Block) {
	k.start[i&3], k.requested[i&3], k.place[i&3] = a, uint32(b.Requested), uint32(b.Place)
}

// pass finds an empty cell behind a full bucket, for a block that belongs there.
func (t *Table) pass(at uint64) (uint64, uint) {
	for {
		if t.passed[at] < mostPassed && !(planted.Enabled && planted.Is("ledger/passed-unseen")) {
			t.passed[at]++
		}
		at = t.next(at)
		if i := t.buckets[at].find(0); i < cells {
			return at, i
		}
	}
}

// attach puts what is extra of a block beside its cell.
func (t *Table) attach(cell uint64, e extra) {
	if t.extras == nil {
		t.extras = make([]extra, len(t.buckets)*cells)
	}
	t.extras[cell] = e
}

// block returns the block of a cell.
func (t *Table) block(at uint64, i uint) Block {
	k := &t.buckets[at]
	b := Block{Requested: device.Size(k.requested[i&3]), Place: uint64(k.place[i&3])}
	if t.extras != nil {
		e := &t.extras[at*cells+uint64(i)]
		b.Tag, b.Stream = e.tag, e.stream
		b.Requested |= device.Size(e.requested) << 32
		b.Place |= uint64(e.place) << 32
	}
	return b
}

// Get returns the block that starts at a, and whether there is one. O(1) expected.
func (t *Table) Get(a device.Addr) (Block, bool) {
	at := t.home(a)
	if a == 0 || at >= uint64(len(t.buckets)) {
		return Block{}, false
	}
	i := t.buckets[at].find(a)
	if i >= cells {
		if at, i = t.search(at, a); i >= cells {
			return Block{}, false
		}
	}
	return t.block(at, i), true
}

// Take removes the block that starts at a and returns it, and whether there was one.
// O(1) expected.
func (t *Table) Take(a device.Addr) (Block, bool) {
	home := t.home(a)
	if a == 0 || home >= uint64(len(t.buckets)) { // zero stands for no block, and at first there are no buckets
		return Block{}, false
	}
	k := &t.buckets[home]
	if i := k.find(a); i < cells && t.extras == nil {
		b := Block{Requested: device.Size(k.requested[i&3]), Place: uint64(k.place[i&3])}
		t.clear(k, i)
		return b, true
	}
	return t.takeFar(home, a)
}

// takeFar is Take where the block may be in a bucket behind its own, or has more than cells hold.
func (t *Table) takeFar(home uint64, a device.Addr) (Block, bool) {
	at, i := home, t.buckets[home].find(a)
	if i >= cells {
		if at, i = t.search(home, a); i >= cells {
			return Block{}, false
		}
	}
	b := t.block(at, i)
	t.clear(&t.buckets[at], i)
	if t.extras != nil {
		t.extras[at*cells+uint64(i)] = extra{}
	}
	for ; home != at; home = t.next(home) {
		if t.passed[home] < mostPassed {
			t.passed[home]--
		}
	}
	return b, true
}

// clear empties a cell.
func (t *Table) clear(k *bucket, i uint) {
	if !planted.Enabled || !planted.Is("ledger/stale-entry") {
		k.start[i&3] = 0
	}
	if !planted.Enabled || !planted.Is("ledger/count-drift") {
		t.n--
	}
}

// Range yields every live block and its start, in no useful order: it is for checks that
// look at all of them, never for choosing one. The table must not be changed meanwhile.
func (t *Table) Range(yield func(device.Addr, Block) bool) {
	for at := range t.buckets {
		for i, start := range t.buckets[at].start {
			if start != 0 && !yield(start, t.block(uint64(at), uint(i))) {
				return
			}
		}
	}
}

// grow makes the table half as large again.
func (t *Table) grow() {
	buckets := max(minBuckets, len(t.buckets)+len(t.buckets)/2)
	wide := Table{
		buckets: make([]bucket, buckets), passed: make([]uint8, buckets), room: buckets * cells * 2 / 3,
	}
	if t.extras != nil {
		wide.extras = make([]extra, buckets*cells)
	}
	for a, b := range t.Range {
		wide.Add(a, b)
	}
	*t = wide
}
