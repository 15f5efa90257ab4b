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
// An entry stands for its whole extent, of which its range may be a part: [Atlas.Get] returns the
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

// node is sixteen entries, each for a sixteenth of what the entry that leads here stands for.
type node [fan]uint32

// Extent tells where the range of a label starts and how many bytes it has.
type Extent func(label uint32) (device.Addr, device.Size)

// Atlas is a set of disjoint ranges of addresses, each with a label. Use [NewAtlas].
type Atlas struct {
	window          // the largest
	others []window // the others, by address
	nodes  []node   // the first is nobody's
	spare  uint32   // a node that nobody has, linked by its first entry, plus one; 0 for none
	extent Extent
}

// NewAtlas returns an atlas without a range. It asks extent for the ends of ranges that it has.
func NewAtlas(extent Extent) Atlas { return Atlas{extent: extent, nodes: make([]node, 1)} }

// Bytes returns the host memory of the atlas, unused capacity included. O(windows).
func (t *Atlas) Bytes() device.Size {
	n := BytesOf(t.areas) + BytesOf(t.nodes) + BytesOf(t.others)
	for i := range t.others {
		n += BytesOf(t.others[i].areas)
	}
	return n
}

// Get returns the label of the only range that an address can lie in, 0 if there is none. It
// may lie beside the range all the same. It costs a step for each node, of which there are
// five at most and one or two where ranges have some KiB.
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

// step returns what an entry leads to, or the entry itself if it is a label. Which of them it is
// nobody could predict, so that there is no branch: from a label it looks into node 0, which is
// nobody's.
func (t *Atlas) step(e uint32, at device.Addr) uint32 {
	leads := uint32(int32(e) >> 31) // all bits, or none
	return e ^ (e^t.nodes[e&leads&most][at&(fan-1)])&leads
}

// descend is Get from an entry that leads to a node, in which the parts have 2^shift bytes.
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

// Set enters a range of n bytes from a up. It costs a step for each area that it reaches into,
// and at the ends of the range one for each node; it allocates only when more ranges are known
// than ever before, or others.
//
// Preconditions: the label is from 1 to 2^31-1 and no range's; n is not zero; the range lies
// beside all others, and extent knows it.
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

// insert enters what a range from lo to hi has of an entry, which stands for 2^log bytes from
// at up, and returns the entry as it is then.
func (t *Atlas) insert(e uint32, at device.Addr, log uint, lo, hi device.Addr, label uint32) uint32 {
	if e == 0 {
		return label
	}
	if log == 0 {
		panic(fmt.Sprintf("atlas: invariant (ranges are disjoint): %v is in those of %d and %d", at, e, label))
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

// spread enters a range into the entries of a node that it reaches into.
func (t *Atlas) spread(e uint32, at device.Addr, log uint, lo, hi device.Addr, label uint32) {
	log -= fanLog
	first, last := reach(at, log, lo, hi)
	for i := first; i <= last; i++ {
		child := t.insert(t.nodes[e&most][i], at+device.Addr(i<<log), log, lo, hi, label)
		t.nodes[e&most][i] = child // which may lie elsewhere by now
	}
}

// reach returns the first and the last entry of a node at an address, each of 2^log bytes, that
// a range from lo to hi reaches into.
//
// Precondition: it reaches into the node.
func reach(at device.Addr, log uint, lo, hi device.Addr) (first, last uint64) {
	first = uint64(max(lo, at)-at) >> log
	last = min(uint64(hi-at)>>log, fan-1)
	return first, last
}

// Clear removes a range of n bytes from a up, at the cost of Set.
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

// remove removes what a range from lo to hi has of an entry, which stands for 2^log bytes from
// at up, and returns the entry as it is then.
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

// AtlasEntry is what the atlas knows of some bytes: no range but one reaches into them.
type AtlasEntry struct {
	Addr  device.Addr // first byte
	Size  device.Size // bytes, a power of two
	Label uint32      // of the range, or 0 for a node in which there is none, which must not be
}

// All yields every entry that has a label, window by window and in each by address. It is for
// checks.
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

// allOf yields the entries of a window, and reports whether to go on.
func (t *Atlas) allOf(w *window, yield func(AtlasEntry) bool) bool {
	for i, e := range w.areas {
		if !t.under(e, device.Addr((w.first+uint64(i))<<areaLog), areaLog, yield) {
			return false
		}
	}
	return true
}

// under yields what an entry leads to, and reports whether to go on.
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
