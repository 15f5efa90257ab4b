// Package addrmap finds the small handles of blocks by their addresses.
//
// # Data structure
//
// A hash table with chains, without the records: a bucket holds the handle of its first
// block, and a second array, indexed by handle, the one that follows. The addresses are not
// kept here but where the handle leads, which whoever looks something up is about to read
// anyway. So an entry is entered without a branch, and found with a single look at the
// caller's record where the chain begins with it, which at one block a bucket three of four
// do. There are no pointers for the garbage collector to follow.
//
// An entry costs 4 to 8 bytes for its bucket and 4 for its handle. The table doubles when
// there are more entries than buckets and never shrinks: it grows with the most blocks that
// ever lived, not with the memory managed, and in steady state nothing is allocated.
//
// The hash multiplies by the golden ratio and keeps the high bits (Knuth, volume 3, section
// 6.4), which spreads addresses that are multiples of a large power of two.
//
// # Open addressing
//
// Linear probing over cells of 8 bytes, with half the hash in each, was here before. A
// deletion there moves later cells back over the gap, and whether and how many is a toss-up
// for the branch predictor; docs/performance.md has both times.
package addrmap

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

const (
	minLog    = 6                  // smallest table: 64 buckets
	golden    = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, odd
	linkBytes = 4
)

// None is no handle. Handles are from 1.
const None = 0

// AddrOf tells the address that a handle stands for. It is asked of handles in the map only.
type AddrOf func(handle uint32) device.Addr

// Map maps addresses to handles. The zero Map is empty and ready.
//
// Get and Delete look an address up. Where time matters, a caller walks the chain itself,
// with its own record of each handle at hand:
//
//	h := m.First(a)
//	for h != addrmap.None && rows[h].addr != a {
//		h = m.Next(h)
//	}
type Map struct {
	heads []uint32 // first handle of each bucket
	next  []uint32 // by handle: the next one of its bucket
	shift uint8    // 64 - log2(len(heads))
	n     int
}

// Len returns the number of addresses.
func (m *Map) Len() int { return m.n }

// Bytes returns the host memory of the table.
func (m *Map) Bytes() device.Size { return device.Size(cap(m.heads)+cap(m.next)) * linkBytes }

// home returns the bucket of an address.
func (m *Map) home(a device.Addr) uint64 { return uint64(a) * golden >> (m.shift & 63) }

// First returns the first handle among which that of a is, None if there is none.
func (m *Map) First(a device.Addr) uint32 {
	if i := m.home(a); i < uint64(len(m.heads)) { // fails only while there are no buckets
		return m.heads[i]
	}
	return None
}

// Next returns the handle behind h, None if it is the last.
func (m *Map) Next(h uint32) uint32 { return m.next[h] }

// Get returns the handle of a, None if there is none. O(1) expected.
func (m *Map) Get(a device.Addr, at AddrOf) uint32 {
	h := m.First(a)
	for h != None && at(h) != a {
		h = m.next[h]
	}
	return h
}

// Delete removes a and returns the handle it had, None if it had none. O(1) expected.
func (m *Map) Delete(a device.Addr, at AddrOf) uint32 {
	h := m.Get(a, at)
	if h != None {
		m.Unlink(a, h)
	}
	return h
}

// Unlink removes a, which has the handle h. O(1) expected.
//
// Precondition: it has.
func (m *Map) Unlink(a device.Addr, h uint32) {
	if planted.Enabled && planted.Is("addrmap/stale-entry") {
		m.n--
		return
	}
	link := &m.heads[m.home(a)]
	for *link != h {
		link = &m.next[*link]
	}
	*link = m.next[h]
	if planted.Enabled && planted.Is("addrmap/chain-cut") {
		*link = None
	}
	m.n--
}

// Put maps a to a handle. O(1) expected; it allocates only when there are more addresses, or
// a higher handle, than ever before.
//
// Precondition: a is not in the map, and the handle neither.
func (m *Map) Put(a device.Addr, h uint32, at AddrOf) {
	if m.n == len(m.heads) || int(h) >= len(m.next) {
		m.extend(h, at)
	}
	if planted.Enabled && planted.Is("addrmap/stale-entry") {
		m.expel(h)
	}
	link := &m.heads[m.home(a)]
	m.next[h] = *link
	*link = h
	m.n++
}

// expel takes a handle out of whatever bucket the planted bug left it in, before it is
// entered a second time and the chain bites its tail.
func (m *Map) expel(h uint32) {
	for i := range m.heads {
		for link := &m.heads[i]; *link != None; link = &m.next[*link] {
			if *link == h {
				*link = m.next[h]
				return
			}
		}
	}
}

// extend makes room for one more address and for a handle. Handles count the chunks of a
// strategy, free ones too, and their array grows by an eighth, because its size is what a
// block costs in host memory.
func (m *Map) extend(h uint32, at AddrOf) {
	if n := int(h) + 1; n > len(m.next) {
		next := make([]uint32, n+max(n/8, 1<<minLog))
		copy(next, m.next)
		m.next = next
	}
	if m.n < len(m.heads) {
		return
	}
	old := m.heads
	log := max(minLog, bits.Len(uint(len(old))))
	m.heads, m.shift = make([]uint32, 1<<log), uint8(64-log)
	for _, h := range old {
		for h != None {
			after, link := m.next[h], &m.heads[m.home(at(h))]
			m.next[h], *link = *link, h
			h = after
		}
	}
}
