package index

// [AddrBuckets] and [AddrMap] find the handles of blocks by their addresses.
//
// A hash table with chains but without records: a bucket holds the handle of its first block, and
// the next handle of a chain lies in the caller's record ([AddrBuckets]) or in an array by handle
// ([AddrMap]). Addresses are compared in the caller's records, which a caller is about to read
// anyway. An entry is inserted without a branch, and three of four lookups end at the first record.
//
// There are at least five buckets for four entries, 5 to 10 bytes each. With as many buckets as
// entries a pair of calls of tlsf took 4 % longer at 1e3 blocks; with twice as many it was no
// faster. The table grows with the largest number of live blocks and never shrinks, so nothing is
// allocated in steady state.
//
// The hash multiplies by the golden ratio and keeps the high bits (Knuth, volume 3, section 6.4).
// The high bits of the address are folded in first: without that, 1e5 blocks of 6,788,352 bytes
// made chains of 44.
//
// Linear probing was tried: a deletion moves later cells back, which the branch predictor cannot
// foresee. A pair of tlsf took 168 ns with it and 129 ns with chains (w1, 1e3 blocks).

import (
	"iter"

	"github.com/vramyard/vramyard/device"
)

const (
	minLog = 6                  // smallest table: 64 buckets
	golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, odd
	fold   = 23                 // shift of the folded bits
)

// NoHandle is the zero handle: none. Handles start at 1.
const NoHandle = 0

// AddrBuckets holds the first handle of each chain, by address. The caller stores the next handle
// of a chain in its own records. Use [NewAddrBuckets].
//
// To look up and remove an address:
//
//	first := b.Of(a)
//	h := *first
//	for h != index.NoHandle && rows[h].addr != a {
//		h = rows[h].chain
//	}
//	*first = rows[h].chain // or the chain of the one before
//	b.Left()
//
// To insert: if b.Full(), then for each handle in the chains that b.Double() returns, set
// rows[h].chain = b.Enter(rows[h].addr, h). Then do the same for the new handle.
//
// A strategy that frees by reference needs no addresses: [AddrBuckets.Drop] gives the buckets up at
// its first such free, and [AddrBuckets.Restore] makes new ones for the next lookup. They stay from
// then on, so a program that frees both ways causes one restoration.
type AddrBuckets struct {
	heads []uint32 // none if they were dropped
	shift uint8    // 64 - log2(len(heads))
	kept  bool     // they were restored
	n     int
}

// NewAddrBuckets returns the smallest number of buckets, all empty.
func NewAddrBuckets() AddrBuckets {
	return AddrBuckets{heads: make([]uint32, 1<<minLog), shift: 64 - minLog}
}

// Len returns the number of addresses.
func (b *AddrBuckets) Len() int { return b.n }

// Bytes returns the host memory of the buckets.
func (b *AddrBuckets) Bytes() device.Size { return BytesOf(b.heads) }

// Of returns the bucket of an address: the first handle of its chain, NoHandle if empty.
func (b *AddrBuckets) Of(a device.Addr) *uint32 {
	return &b.heads[uint64(a^a>>fold)*golden>>(b.shift&63)]
}

// Drop releases the buckets with all entries, unless they were restored before. It reports whether
// it did.
func (b *AddrBuckets) Drop() bool {
	if !b.kept {
		b.heads, b.n = nil, 0
	}
	return !b.kept
}

// Dropped reports whether there are no buckets now. Enter and Of must not be called then.
func (b *AddrBuckets) Dropped() bool { return len(b.heads) == 0 }

// Restore makes empty buckets for n addresses. They cannot be dropped again.
func (b *AddrBuckets) Restore(n int) {
	*b = NewAddrBuckets()
	for b.n = n; b.Full(); b.shift-- {
		b.heads = make([]uint32, 2*len(b.heads))
	}
	b.kept, b.n = true, 0
}

// Left counts a removal by the caller.
func (b *AddrBuckets) Left() { b.n-- }

// Full reports whether Double must be called before the next Enter. It is true of dropped buckets.
func (b *AddrBuckets) Full() bool { return 5*b.n >= 4*len(b.heads) }

// Double doubles the number of buckets, all empty, and returns the old ones, whose chains the
// caller enters again.
func (b *AddrBuckets) Double() []uint32 {
	old := b.heads
	b.heads, b.n = make([]uint32, 2*len(old)), 0
	b.shift--
	return old
}

// Enter makes h the first handle of the bucket of a, and returns the handle that follows it.
//
// Precondition: a is not in the buckets, and they are not full.
func (b *AddrBuckets) Enter(a device.Addr, h uint32) (next uint32) {
	first := b.Of(a)
	next, *first = *first, h
	b.n++
	return next
}

// AddrOf returns the address of a handle in the map.
type AddrOf func(handle uint32) device.Addr

// AddrMap is AddrBuckets with an array for the chains, for callers whose records have no room for
// them. Use [NewAddrMap].
type AddrMap struct {
	buckets AddrBuckets
	next    []uint32 // by handle: next handle of the bucket
}

// NewAddrMap returns an empty map.
func NewAddrMap() AddrMap { return AddrMap{buckets: NewAddrBuckets()} }

// Len returns the number of addresses.
func (m *AddrMap) Len() int { return m.buckets.Len() }

// First returns the first handle of the chain in which a would be, or NoHandle.
func (m *AddrMap) First(a device.Addr) uint32 { return *m.buckets.Of(a) }

// Bytes returns the host memory of the map.
func (m *AddrMap) Bytes() device.Size { return m.buckets.Bytes() + BytesOf(m.next) }

// Next returns the handle after h in its bucket, or NoHandle.
func (m *AddrMap) Next(h uint32) uint32 { return m.next[h] }

// Get returns the handle of a, or NoHandle. O(1) expected.
func (m *AddrMap) Get(a device.Addr, at AddrOf) uint32 {
	h := m.First(a)
	for h != NoHandle && at(h) != a {
		h = m.next[h]
	}
	return h
}

// Delete removes a and returns its handle, or NoHandle. O(1) expected.
func (m *AddrMap) Delete(a device.Addr, at AddrOf) uint32 {
	h := m.Get(a, at)
	if h != NoHandle {
		m.Unlink(a, h)
	}
	return h
}

// Unlink removes address a with handle h, unless the map is dropped. O(1) expected.
//
// Precondition: the map has this entry.
func (m *AddrMap) Unlink(a device.Addr, h uint32) {
	if m.Dropped() {
		return
	}
	m.buckets.Left()
	link := m.buckets.Of(a)
	for *link != h {
		link = &m.next[*link]
	}
	*link = m.next[h]
}

// UnlinkRef is Unlink for a caller that frees by reference. It drops the map the first time, unless
// the map was restored.
//
// Precondition: the map has this entry, or is dropped.
func (m *AddrMap) UnlinkRef(a device.Addr, h uint32) {
	if m.Dropped() {
		return
	}
	if m.buckets.Drop() {
		m.next = nil
		return
	}
	m.Unlink(a, h)
}

// Dropped reports whether the map is dropped. Nothing can be looked up then.
func (m *AddrMap) Dropped() bool { return m.buckets.Dropped() }

// Restore makes a dropped map again from n handles. It cannot be dropped again.
func (m *AddrMap) Restore(n int, handles iter.Seq[uint32], at AddrOf) {
	m.buckets.Restore(n)
	for h := range handles {
		m.Put(at(h), h, at)
	}
}

// Put maps a to a handle, unless the map is dropped. O(1) expected; it allocates only beyond the
// highest number of addresses or the highest handle so far.
//
// Precondition: neither a nor the handle is in the map.
func (m *AddrMap) Put(a device.Addr, h uint32, at AddrOf) {
	if (m.buckets.Full() || int(h) >= len(m.next)) && !m.extend(h, at) {
		return
	}
	m.next[h] = m.buckets.Enter(a, h)
}

// extend makes room for an address and a handle. Handles count all chunks of a strategy, so their
// array grows by only a sixteenth: its size is most of the host memory of a block. It returns false
// if the map is dropped.
func (m *AddrMap) extend(h uint32, at AddrOf) bool {
	if m.Dropped() {
		return false
	}
	if n := int(h) + 1; n > len(m.next) {
		next := make([]uint32, n+max(n/16, 1<<minLog))
		copy(next, m.next)
		next[NoHandle] = ^uint32(0) // Unlink of an address that is not in the map panics here and does not loop
		m.next = next
	}
	if !m.buckets.Full() {
		return true
	}
	for _, h := range m.buckets.Double() {
		for h != NoHandle {
			after := m.next[h]
			m.next[h] = m.buckets.Enter(at(h), h)
			h = after
		}
	}
	return true
}
