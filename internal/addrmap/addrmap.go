// Package addrmap finds the small handles of blocks by their addresses.
//
// It is an open-addressing hash table with linear probing over cells of 8 bytes: 32 bits of
// the address's hash and the handle. The addresses themselves are not kept here but where
// the handle leads, which whoever looks something up is about to read anyway; a function that
// the caller passes tells them. Two addresses with the same 32 bits are rare, and told apart
// that way. There are no pointers for the garbage collector to follow, and a lookup usually
// reads one cache line of the table.
//
// Deletion shifts later entries back instead of leaving tombstones, so that a table in
// steady state never needs to be rebuilt and allocates nothing. The table doubles at
// three quarters full and never shrinks: it grows with the most blocks that ever lived,
// not with the memory managed.
//
// The hash multiplies by the golden ratio and keeps the high bits (Knuth, volume 3,
// section 6.4), which spreads addresses that are multiples of a large power of two.
package addrmap

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/planted"
)

const (
	minLog    = 6                  // smallest table: 64 cells, 512 bytes
	golden    = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, odd
	cellBytes = 8
	hashShift = 32 // of a cell and of the product: the hash is its upper half
)

// Most is the largest handle.
const Most = 1<<32 - 2

// AddrOf tells the address that a handle stands for. It is asked of handles in the map only.
type AddrOf func(handle uint32) device.Addr

// Map maps addresses to handles. The zero Map is empty and ready.
type Map struct {
	cells []uint64 // hash above handle + 1; 0 is empty
	shift uint8    // 64 - log2(len(cells))
	n     int
}

// Len returns the number of addresses.
func (m *Map) Len() int { return m.n }

// Bytes returns the host memory of the table.
func (m *Map) Bytes() device.Size { return device.Size(cap(m.cells)) * cellBytes }

// hashOf returns the hash of an address in the place where a cell has it.
func hashOf(a device.Addr) uint64 { return uint64(a) * golden >> hashShift << hashShift }

// home returns the place in which the search for a hash begins.
func (m *Map) home(hash uint64) uint64 { return hash >> (m.shift & 63) }

// find returns the place of a, and whether it is there.
//
// Precondition: the map has cells.
func (m *Map) find(a device.Addr, at AddrOf) (uint64, bool) {
	mask, hash := uint64(len(m.cells)-1), hashOf(a)
	for i := m.home(hash); ; i++ {
		c := m.cells[i&mask]
		if c == 0 {
			return 0, false
		}
		if c>>hashShift == hash>>hashShift && at(uint32(c)-1) == a {
			return i & mask, true
		}
	}
}

// Get returns the handle of a, and whether there is one. O(1) expected.
func (m *Map) Get(a device.Addr, at AddrOf) (handle uint32, ok bool) {
	if m.n == 0 {
		return 0, false
	}
	i, ok := m.find(a, at)
	if !ok {
		return 0, false
	}
	return uint32(m.cells[i]) - 1, true
}

// Put maps a to a handle of at most Most. O(1) expected; it allocates only when the table
// grows.
//
// Precondition: a is not in the map.
func (m *Map) Put(a device.Addr, handle uint32) {
	if 4*(m.n+1) > 3*len(m.cells) {
		m.grow()
	}
	m.n++
	m.enter(hashOf(a) | uint64(handle+1))
}

// enter puts a cell into the first empty place from its home on.
func (m *Map) enter(c uint64) {
	mask := uint64(len(m.cells) - 1)
	i := m.home(c)
	for m.cells[i&mask] != 0 {
		i++
	}
	m.cells[i&mask] = c
}

// Delete removes a and returns the handle it had, and whether it had one. O(1) expected.
func (m *Map) Delete(a device.Addr, at AddrOf) (handle uint32, ok bool) {
	if m.n == 0 {
		return 0, false
	}
	i, ok := m.find(a, at)
	if !ok {
		return 0, false
	}
	handle = uint32(m.cells[i]) - 1
	m.n--
	if planted.Enabled && planted.Is("addrmap/stale-entry") {
		return handle, true
	}
	m.closeGap(i)
	return handle, true
}

// closeGap empties a place and moves back every later cell of the run that the gap would
// cut off from its home.
func (m *Map) closeGap(i uint64) {
	mask := uint64(len(m.cells) - 1)
	for j := i + 1; ; j++ {
		c := m.cells[j&mask]
		if c == 0 || planted.Enabled && planted.Is("addrmap/gap-left-open") {
			break
		}
		// The cell may move to i unless its home lies cyclically in (i, j].
		if (j-m.home(c))&mask >= (j-i)&mask {
			m.cells[i&mask] = c
			i = j
		}
	}
	m.cells[i&mask] = 0
}

// grow doubles the table. The hashes tell where the cells go, so no address is needed.
func (m *Map) grow() {
	old := m.cells
	log := max(minLog, bits.Len(uint(len(old))))
	m.cells, m.shift = make([]uint64, 1<<log), uint8(64-log)
	for _, c := range old {
		if c != 0 {
			m.enter(c)
		}
	}
}
