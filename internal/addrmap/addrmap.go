// Package addrmap maps the addresses of blocks to small handles.
//
// It is an open-addressing hash table with linear probing: one array of 16-byte entries,
// no pointers for the garbage collector to follow, usually one cache line per lookup.
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
	minLog = 6                  // smallest table: 64 entries, 1 KiB
	golden = 0x9E3779B97F4A7C15 // 2^64 / golden ratio, odd
)

// entry is one cell; value is one more than the handle, so that zero means empty and
// every address, zero too, can be a key.
type entry struct {
	key   device.Addr
	value uint64
}

// Map maps addresses to handles. The zero Map is empty and ready.
type Map struct {
	cells []entry
	shift uint8 // 64 - log2(len(cells))
	n     int
}

// Len returns the number of keys.
func (m *Map) Len() int { return m.n }

// Bytes returns the host memory of the table.
func (m *Map) Bytes() device.Size { return device.Size(cap(m.cells)) * 16 }

// home returns the cell in which the search for a begins.
//
// Precondition: the table is not empty.
func (m *Map) home(a device.Addr) uint64 { return uint64(a) * golden >> m.shift }

// Get returns the handle of a, and whether there is one. O(1) expected.
func (m *Map) Get(a device.Addr) (handle uint32, ok bool) {
	if len(m.cells) == 0 {
		return 0, false
	}
	mask := uint64(len(m.cells) - 1)
	for i := m.home(a); ; i = (i + 1) & mask {
		c := &m.cells[i&mask]
		if c.value == 0 {
			return 0, false
		}
		if c.key == a {
			return uint32(c.value - 1), true
		}
	}
}

// Put maps a to handle, in place of what a was mapped to before. O(1) expected; it
// allocates only when the table grows.
func (m *Map) Put(a device.Addr, handle uint32) {
	if 4*(m.n+1) > 3*len(m.cells) {
		m.grow()
	}
	mask := uint64(len(m.cells) - 1)
	for i := m.home(a); ; i = (i + 1) & mask {
		c := &m.cells[i&mask]
		if c.value == 0 {
			m.n++
			*c = entry{a, uint64(handle) + 1}
			return
		}
		if c.key == a {
			c.value = uint64(handle) + 1
			return
		}
	}
}

// Delete removes a and returns the handle it had, and whether it had one. O(1) expected.
func (m *Map) Delete(a device.Addr) (handle uint32, ok bool) {
	if len(m.cells) == 0 {
		return 0, false
	}
	mask := uint64(len(m.cells) - 1)
	i := m.home(a)
	for ; ; i = (i + 1) & mask {
		c := &m.cells[i&mask]
		if c.value == 0 {
			return 0, false
		}
		if c.key == a {
			handle = uint32(c.value - 1)
			break
		}
	}
	m.n--
	if planted.Enabled && planted.Is("addrmap/stale-entry") {
		return handle, true
	}
	m.closeGap(i)
	return handle, true
}

// closeGap empties cell i and moves back every later entry of the run that the gap would
// cut off from its home.
func (m *Map) closeGap(i uint64) {
	mask := uint64(len(m.cells) - 1)
	for j := (i + 1) & mask; ; j = (j + 1) & mask {
		c := &m.cells[j&mask]
		if c.value == 0 || planted.Enabled && planted.Is("addrmap/gap-left-open") {
			break
		}
		// The entry may move to i unless its home lies cyclically in (i, j].
		if (j-m.home(c.key))&mask >= (j-i)&mask {
			m.cells[i&mask] = *c
			i = j
		}
	}
	m.cells[i&mask] = entry{}
}

// Range yields every key and handle, in no useful order.
func (m *Map) Range(yield func(device.Addr, uint32) bool) {
	for _, c := range m.cells {
		if c.value != 0 && !yield(c.key, uint32(c.value-1)) {
			return
		}
	}
}

// Clear removes every key and keeps the room.
func (m *Map) Clear() {
	clear(m.cells)
	m.n = 0
}

// grow doubles the table.
func (m *Map) grow() {
	old := m.cells
	log := minLog
	if len(old) > 0 {
		log = bits.Len(uint(len(old)))
	}
	m.cells = make([]entry, 1<<log)
	m.shift = uint8(64 - log)
	m.n = 0
	for _, c := range old {
		if c.value != 0 {
			m.Put(c.key, uint32(c.value-1))
		}
	}
}
