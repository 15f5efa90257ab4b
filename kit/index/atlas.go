package index

// [Atlas] finds the range, of many disjoint ones, that contains an address. A strategy that cuts
// memory into ranges of its own, such as slabs, finds the range of a freed address without a table
// of blocks. A range has a label, a number from 1; the caller keeps its ends.
//
// # Data structure
//
// A trie whose depth follows the ranges. Addresses are cut into areas of 1 MiB. An area that one
// range reaches into has its label, an area with several leads to a node of sixteen entries, one
// cache line, and so on down. A node is removed with its last entry. So the memory depends on the
// number of ranges, not on their sizes: a table of pages of 2 KiB would take a thousand entries for
// each slab of a slab-buddy.
//
// The entries of areas lie in windows, slices without holes. Nearly always there is one; regions
// far apart begin others, which a lookup finds by binary search. A window is at most a constant
// times as long as the areas in use, so the memory is bounded wherever regions lie.
//
// An entry covers its whole extent, of which its range may be a part: [Atlas.Get] returns the
// only range that can contain an address, and the caller compares with the ends of the range.

import (
	"fmt"

	"github.com/vramyard/vramyard/device"
)

const (
	areaLog = 20          // log2 of the bytes of an area
	fanLog  = 4           // log2 of the entries of a node: as many as fill a cache line
	fan     = 1 << fanLog // entries of a node
	inner   = 1 << 31     // marks an entry that leads to a node
	most    = inner - 1   // largest label
)

// node has sixteen entries, each for a sixteenth of the extent of the entry that leads to it.
type node [fan]uint32

// Extent returns the start and the size of the range of a label.
type Extent func(label uint32) (device.Addr, device.Size)

// Atlas is a set of disjoint ranges of addresses, each with a label. Use [NewAtlas].
type Atlas struct {
	window          // the largest window
	others []window // the others, by address
	nodes  []node   // nodes[0] is unused and zero
	spare  uint32   // first unused node plus one, linked by first entries; 0 for none
	extent Extent
}

// NewAtlas returns an empty atlas. It calls extent for labels that it holds.
func NewAtlas(extent Extent) Atlas { return Atlas{extent: extent, nodes: make([]node, 1)} }

// Bytes returns the host memory of the atlas, unused capacity included. O(windows).
func (t *Atlas) Bytes() device.Size {
	n := BytesOf(t.areas) + BytesOf(t.nodes) + BytesOf(t.others)
	for i := range t.others {
		n += BytesOf(t.others[i].areas)
	}
	return n
}

// Get returns the label of the only range that can contain an address, or 0. The range may still
// lie beside the address. It costs a step per node: at most five, one or two for ranges of some
// KiB.
func (t *Atlas) Get(a device.Addr) uint32 {
	i := uint64(a)>>areaLog - t.first
	if i >= uint64(len(t.areas)) {
		return t.getFar(a)
	}
	e := t.step(t.step(t.areas[i], a>>(areaLog-fanLog)), a>>(areaLog-2*fanLog))
	if e < inner {
		return e
	}
	return t.descend(e, a, areaLog-3*fanLog)
}

// step returns the entry of the node that e leads to, or e itself if it is a label. Branch-free:
// which of both is unpredictable, so for a label it reads node 0, which is zero.
func (t *Atlas) step(e uint32, at device.Addr) uint32 {
	leads := uint32(int32(e) >> 31) // all ones for a node, otherwise 0
	return e ^ (e^t.nodes[e&leads&most][at&(fan-1)])&leads
}

// descend is Get from an entry that leads to a node whose parts have 2^shift bytes.
func (t *Atlas) descend(e uint32, a device.Addr, shift int) uint32 {
	for ; e >= inner; shift -= fanLog {
		e = t.nodes[e&most][uint64(a)>>(shift&63)&(fan-1)]
	}
	return e
}

// getFar is Get outside the largest window.
func (t *Atlas) getFar(a device.Addr) uint32 {
	area := uint64(a) >> areaLog
	w := t.windowOf(area)
	if w == nil {
		return 0
	}
	return t.descend(w.areas[area-w.first], a, areaLog-fanLog)
}

// Set enters a range of n bytes at a. It costs a step for each area that the range overlaps and for
// each node at its ends. It allocates only beyond the largest number of areas or nodes so far.
//
// Preconditions: the label is from 1 to 2^31-1 and unused; n is not zero; the range is disjoint
// from all others, and extent knows it.
func (t *Atlas) Set(a device.Addr, n device.Size, label uint32) {
	last := a.Add(n - 1)
	for area := uint64(a) >> areaLog; area <= uint64(last)>>areaLog; area++ {
		w := t.open(area)
		e := w.areas[area-w.first] // before the insertion, which does not move windows
		if e == 0 {
			w.used++
		}
		w.areas[area-w.first] = t.insert(e, device.Addr(area<<areaLog), areaLog, a, last, label)
	}
}

// insert enters the part of a range [lo, hi) that overlaps an entry for 2^log bytes at at, and
// returns the new entry.
func (t *Atlas) insert(e uint32, at device.Addr, log uint, lo, hi device.Addr, label uint32) uint32 {
	if e == 0 {
		return label
	}
	if log == 0 {
		panic(fmt.Sprintf("atlas: invariant (ranges are disjoint): %v is in the ranges %d and %d", at, e, label))
	}
	if e < inner {
		from, n := t.extent(e)
		split := t.take() | inner
		t.spread(split, at, log, from, from.Add(n-1), e)
		e = split
	}
	t.spread(e, at, log, lo, hi, label)
	return e
}

// spread enters a range into the overlapping entries of a node.
func (t *Atlas) spread(e uint32, at device.Addr, log uint, lo, hi device.Addr, label uint32) {
	log -= fanLog
	first, last := reach(at, log, lo, hi)
	for i := first; i <= last; i++ {
		child := t.insert(t.nodes[e&most][i], at+device.Addr(i<<log), log, lo, hi, label)
		t.nodes[e&most][i] = child // nodes may have been reallocated
	}
}

// reach returns the first and the last entry of a node at an address, each of 2^log bytes, that a
// range [lo, hi) overlaps.
//
// Precondition: they overlap.
func reach(at device.Addr, log uint, lo, hi device.Addr) (first, last uint64) {
	first = uint64(max(lo, at)-at) >> log
	last = min(uint64(hi-at)>>log, fan-1)
	return first, last
}

// Clear removes a range of n bytes at a, at the cost of Set.
//
// Precondition: Set entered it with that label.
func (t *Atlas) Clear(a device.Addr, n device.Size, label uint32) {
	last := a.Add(n - 1)
	for area := uint64(a) >> areaLog; area <= uint64(last)>>areaLog; area++ {
		w := &t.window
		if area-w.first >= uint64(len(w.areas)) {
			w = t.windowOf(area)
		}
		e := &w.areas[area-w.first]
		if *e = t.remove(*e, device.Addr(area<<areaLog), areaLog, a, last, label); *e == 0 {
			t.leave(w)
		}
	}
}

// remove removes the part of a range [lo, hi) that overlaps an entry for 2^log bytes at at, and
// returns the new entry.
func (t *Atlas) remove(e uint32, at device.Addr, log uint, lo, hi device.Addr, label uint32) uint32 {
	if e == label {
		return 0
	}
	if e < inner {
		panic(fmt.Sprintf("atlas: invariant (ranges are known): %v is known as %d, not %d", at, e, label))
	}
	log -= fanLog
	n := &t.nodes[e&most]
	first, last := reach(at, log, lo, hi)
	for i := first; i <= last; i++ {
		n[i] = t.remove(n[i], at+device.Addr(i<<log), log, lo, hi, label)
	}
	for _, child := range n {
		if child != 0 {
			return e
		}
	}
	n[0] = t.spare
	t.spare = e&most + 1
	return 0
}

func (t *Atlas) take() uint32 {
	if n := t.spare; n != 0 {
		t.spare = t.nodes[n-1][0]
		t.nodes[n-1][0] = 0
		return n - 1
	}
	t.nodes = append(t.nodes, node{})
	return uint32(len(t.nodes) - 1)
}

// AtlasEntry is an aligned extent that at most one range overlaps.
type AtlasEntry struct {
	Addr  device.Addr // first byte
	Size  device.Size // bytes, a power of two
	Label uint32      // label of the range; 0 for an empty node, which breaks an invariant
}

// All yields every entry with a label, window by window and by address in each. It is for checks.
func (t *Atlas) All(yield func(AtlasEntry) bool) {
	if !t.allOf(&t.window, yield) {
		return
	}
	for i := range t.others {
		if !t.allOf(&t.others[i], yield) {
			return
		}
	}
}

// allOf yields the entries of a window, and reports whether to continue.
func (t *Atlas) allOf(w *window, yield func(AtlasEntry) bool) bool {
	for i, e := range w.areas {
		if !t.under(e, device.Addr((w.first+uint64(i))<<areaLog), areaLog, yield) {
			return false
		}
	}
	return true
}

// under yields the labels below an entry, and reports whether to continue.
func (t *Atlas) under(e uint32, at device.Addr, log uint, yield func(AtlasEntry) bool) bool {
	if e < inner {
		return e == 0 || yield(AtlasEntry{at, 1 << log, e})
	}
	if n := t.nodes[e&most]; n == (node{}) {
		return yield(AtlasEntry{at, 1 << log, 0})
	}
	for i, child := range t.nodes[e&most] {
		if !t.under(child, at+device.Addr(uint64(i)<<(log-fanLog)), log-fanLog, yield) {
			return false
		}
	}
	return true
}
