package index

// [AddrList] keeps values in the order of addresses, for tables of regions.
//
// The entries lie in sorted leaves of at most 64. A slice of the first addresses makes a search a
// binary search among the leaves and one in a leaf. A full leaf is cut in half, unless it is the
// last and grows at its end; a small leaf joins a neighbor. A list of up to 64 entries is one
// sorted slice. A larger list moves at most 64 entries per call, and the rows of the leaves above,
// 40 bytes each, when a leaf is cut or joined.
//
// # Bounds
//
// Each leaf has a bound that the user sets: no entry of the leaf exceeds it. A search skips the
// leaves whose bound is too low. Cut and joined leaves inherit the larger bound, and 64 leaves form
// a group with a bound of its own. A bound may be too high, never too low: the user raises it at
// once, and lowers it after a look at all entries of the leaf, so removing the largest entry does
// not search for the second largest.
//
// Invariant: addresses ascend, if entries are inserted where Search says.

import (
	"slices"

	"github.com/vramyard/vramyard/device"
)

// leafMost is the entries that a leaf holds. In BenchmarkChurn of device/sim, 32 make calls with
// a million regions one and a half to four times as dear, and 128 those with a thousand or more
// by half.
const leafMost = 64

// A leaf of at most joinBelow entries joins a neighbour if both then fill half a leaf, so
// that many calls lie between a cut and a join.
const joinBelow = leafMost / 4

// rowBytes is the host memory of a leaf beside its entries, and addrBytes that of an address.
const (
	rowBytes  = 24 + 8 + 8
	addrBytes = 8
)

// AddrEntry is a value and its address.
type AddrEntry[V any] struct {
	Addr  device.Addr // by which entries are ordered
	Value V           // holds no pointers
}

// AddrList is entries by address. The zero List is empty. It is not safe for concurrent use, not
// even for reading.
type AddrList[V any] struct {
	leaves [][]AddrEntry[V] // sorted; none is empty, but for the only one
	firsts []device.Addr    // the lowest address of each leaf; of an empty one, anything
	bounds []device.Size    // of each leaf
	groups []device.Size    // of each groupLeaves leaves, at least the bound of every one
	spare  [][]AddrEntry[V] // empty ones, to be used again
	count  int
	// Nth remembers a leaf and how many entries lie below it, so that a walk by number costs
	// O(1) an entry.
	finger, below int
}

// AddrPos is the place of an entry, or one between entries. It holds until the list changes.
type AddrPos struct {
	Leaf int // leaves below
	At   int // entries below in the leaf
}

// Len returns the number of entries.
func (l *AddrList[V]) Len() int { return l.count }

// Leaves returns the number of leaves.
func (l *AddrList[V]) Leaves() int { return len(l.leaves) }

// Leaf returns the entries of leaf j, which the caller does not change.
func (l *AddrList[V]) Leaf(j int) []AddrEntry[V] { return l.leaves[j] }

// Bytes returns the host memory of a list whose values take so many bytes, unused capacity
// included. O(leaves).
func (l *AddrList[V]) Bytes(value device.Size) device.Size {
	rows, entries := cap(l.leaves)+cap(l.spare), 0
	for _, set := range [2][][]AddrEntry[V]{l.leaves, l.spare} {
		for _, f := range set {
			entries += cap(f)
		}
	}
	return device.Size(rows)*rowBytes + device.Size(entries)*(value+addrBytes)
}

// Search returns the place of the entry at a and true, or the place where it belongs and
// false.
func (l *AddrList[V]) Search(a device.Addr) (AddrPos, bool) {
	if len(l.leaves) == 0 {
		return AddrPos{}, false
	}
	j := 0
	for high := len(l.firsts); high-j > 1; { // the leaf that starts at or below a
		if mid := int(uint(j+high) / 2); l.firsts[mid] <= a {
			j = mid
		} else {
			high = mid
		}
	}
	f := l.leaves[j]
	i, high := 0, len(f)
	for i < high {
		if mid := int(uint(i+high) / 2); f[mid].Addr < a {
			i = mid + 1
		} else {
			high = mid
		}
	}
	return AddrPos{j, i}, i < len(f) && f[i].Addr == a
}

// End returns the place behind the last entry.
func (l *AddrList[V]) End() AddrPos {
	if len(l.leaves) == 0 {
		return AddrPos{}
	}
	last := len(l.leaves) - 1
	return AddrPos{last, len(l.leaves[last])}
}

// Holds reports whether there is an entry at p, and not only a place for one.
func (l *AddrList[V]) Holds(p AddrPos) bool {
	return p.Leaf < len(l.leaves) && p.At < len(l.leaves[p.Leaf])
}

// Entry returns the entry at p.
//
// Precondition: Holds(p).
func (l *AddrList[V]) Entry(p AddrPos) AddrEntry[V] { return l.leaves[p.Leaf][p.At] }

// Below returns the entry before place p, if there is one.
func (l *AddrList[V]) Below(p AddrPos) (e AddrEntry[V], ok bool) {
	if p.At > 0 {
		return l.leaves[p.Leaf][p.At-1], true
	}
	if p.Leaf == 0 {
		return e, false
	}
	f := l.leaves[p.Leaf-1]
	return f[len(f)-1], true
}

// Floor returns the place of the highest entry at or below a, or the lowest place and false if
// there is none.
func (l *AddrList[V]) Floor(a device.Addr) (p AddrPos, ok bool) {
	p, ok = l.Search(a)
	if !ok && p.At > 0 { // Search looks in the leaf that starts at or below a, if there is one
		p.At--
		ok = true
	}
	return p, ok
}

// Above returns p if there is an entry at it, or the place of the next one, at which Holds is
// false if there is none.
func (l *AddrList[V]) Above(p AddrPos) AddrPos {
	if p.Leaf < len(l.leaves) && p.At >= len(l.leaves[p.Leaf]) {
		return AddrPos{p.Leaf + 1, 0}
	}
	return p
}

// Next returns the place of the entry above that at p, at which Holds is false if there is none.
//
// Precondition: Holds(p).
func (l *AddrList[V]) Next(p AddrPos) AddrPos { return l.Above(AddrPos{p.Leaf, p.At + 1}) }

// Set replaces the entry at p.
//
// Precondition: Holds(p), and the new address lies between those of the neighbours.
func (l *AddrList[V]) Set(p AddrPos, e AddrEntry[V]) {
	l.leaves[p.Leaf][p.At] = e
	l.firsts[p.Leaf] = l.leaves[p.Leaf][0].Addr
}

// Clear removes every entry and keeps the memory.
func (l *AddrList[V]) Clear() {
	if len(l.leaves) == 0 {
		return
	}
	for _, f := range l.leaves[1:] {
		l.spare = append(l.spare, f[:0])
	}
	clear(l.leaves[1:])
	l.leaves, l.firsts, l.bounds = l.leaves[:1], l.firsts[:1], l.bounds[:1]
	l.leaves[0], l.bounds[0] = l.leaves[0][:0], 0
	l.count, l.finger, l.below = 0, 0, 0
	l.regroup(0)
}

// Nth returns the place of the entry with i entries below it. One after the other costs O(1),
// else it is O(leaves).
//
// Precondition: 0 <= i < Len().
func (l *AddrList[V]) Nth(i int) AddrPos {
	for i < l.below {
		l.finger--
		l.below -= len(l.leaves[l.finger])
	}
	for n := len(l.leaves[l.finger]); i >= l.below+n; n = len(l.leaves[l.finger]) {
		l.finger++
		l.below += n
	}
	return AddrPos{l.finger, i - l.below}
}

// All yields every entry by address. The list must not change meanwhile.
func (l *AddrList[V]) All(yield func(AddrEntry[V]) bool) {
	for _, f := range l.leaves {
		for _, e := range f {
			if !yield(e) {
				return
			}
		}
	}
}

// Insert enters an entry at a place and returns the place it is at. Nothing is allocated once
// the list has been as large.
//
// Precondition: p is of this list, and the entries below it have lower addresses, the others
// higher ones.
func (l *AddrList[V]) Insert(p AddrPos, e AddrEntry[V]) AddrPos {
	switch {
	case len(l.leaves) == 0:
		l.insertLeaf(0, nil, 0)
	case len(l.leaves[p.Leaf]) == leafMost:
		p = l.cut(p)
	}
	f := l.leaves[p.Leaf]
	f = append(f, e)
	if p.At < len(f)-1 {
		copy(f[p.At+1:], f[p.At:])
		f[p.At] = e
	}
	l.leaves[p.Leaf] = f
	l.firsts[p.Leaf] = f[0].Addr
	l.count++
	l.changed(p.Leaf)
	return p
}

// Delete removes the entry at p and returns the place of the next one, or End.
//
// Precondition: Holds(p).
func (l *AddrList[V]) Delete(p AddrPos) AddrPos {
	f := l.leaves[p.Leaf]
	f = append(f[:p.At], f[p.At+1:]...)
	l.leaves[p.Leaf] = f
	l.count--
	l.changed(p.Leaf)
	if len(f) > 0 {
		l.firsts[p.Leaf] = f[0].Addr
	}
	if len(l.leaves) == 1 {
		return p
	}
	if len(f) <= joinBelow {
		p = l.shrink(p)
	}
	if p.Leaf+1 < len(l.leaves) && p.At == len(l.leaves[p.Leaf]) {
		return AddrPos{p.Leaf + 1, 0}
	}
	return p
}

// changed notes that the number of entries of leaf j, or of one above, has changed.
func (l *AddrList[V]) changed(j int) {
	if l.finger > j {
		l.finger, l.below = 0, 0
	}
}

// cut makes two leaves of the full one of p and returns what p has become.
func (l *AddrList[V]) cut(p AddrPos) AddrPos {
	at := leafMost / 2
	if p == l.End() {
		at = leafMost
	}
	var upper []AddrEntry[V]
	if n := len(l.spare); n > 0 {
		upper, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		upper = make([]AddrEntry[V], 0, leafMost)
	}
	f := l.leaves[p.Leaf]
	l.leaves[p.Leaf] = f[:at]
	l.insertLeaf(p.Leaf+1, append(upper, f[at:]...), l.bounds[p.Leaf])
	l.changed(p.Leaf)
	if p.At < at {
		return p
	}
	return AddrPos{p.Leaf + 1, p.At - at}
}

func (l *AddrList[V]) insertLeaf(j int, f []AddrEntry[V], bound device.Size) {
	first := device.Addr(0)
	if len(f) > 0 {
		first = f[0].Addr
	}
	l.leaves = slices.Insert(l.leaves, j, f)
	l.firsts = slices.Insert(l.firsts, j, first)
	l.bounds = slices.Insert(l.bounds, j, bound)
	l.regroup(j)
	l.changed(j)
}

// shrink joins the small leaf of p with a neighbour, if the two are not too large or there
// is nothing left in it, and returns what p has become.
func (l *AddrList[V]) shrink(p AddrPos) AddrPos {
	n := len(l.leaves[p.Leaf])
	fits := func(j int) bool {
		return j >= 0 && j < len(l.leaves) && (n == 0 || n+len(l.leaves[j]) <= leafMost/2)
	}
	switch {
	case fits(p.Leaf - 1):
		p = AddrPos{p.Leaf - 1, len(l.leaves[p.Leaf-1]) + p.At}
		l.join(p.Leaf)
	case fits(p.Leaf + 1):
		l.join(p.Leaf)
	}
	return p
}

func (l *AddrList[V]) join(j int) {
	upper := l.leaves[j+1]
	l.leaves[j] = append(l.leaves[j], upper...)
	l.spare = append(l.spare, upper[:0])
	l.firsts[j] = l.leaves[j][0].Addr
	l.bounds[j] = max(l.bounds[j], l.bounds[j+1])
	l.leaves = slices.Delete(l.leaves, j+1, j+2)
	l.firsts = slices.Delete(l.firsts, j+1, j+2)
	l.bounds = slices.Delete(l.bounds, j+1, j+2)
	l.regroup(j)
	l.changed(j)
}
