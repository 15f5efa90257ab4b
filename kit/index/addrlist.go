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
// Invariant: addresses ascend, if entries are inserted at the positions that Search returns.

import (
	"math/bits"
	"slices"

	"github.com/vramyard/vramyard/device"
)

// leafMost is the capacity of a leaf. In BenchmarkChurn of device/sim, leaves of 32 make calls with
// a million regions 1.5 to 4 times slower, and leaves of 128 make calls with a thousand or more 1.5
// times slower.
const leafMost = 64

// A leaf of at most joinBelow entries joins a neighbor if both together fill at most half a leaf.
// So at least that many calls lie between a split and a join.
const joinBelow = leafMost / 4

// rowBytes is the host memory of a leaf without its entries, addrBytes of an address.
const (
	rowBytes  = 24 + 8 + 8
	addrBytes = 8
)

// AddrEntry is a value and its address.
type AddrEntry[V any] struct {
	Addr  device.Addr // by which entries are ordered
	Value V           // holds no pointers
}

// AddrList holds entries by address. The zero value is empty. It is not safe for concurrent use,
// not even for reading.
type AddrList[V any] struct {
	leaves [][]AddrEntry[V] // sorted; none is empty, except a single one
	firsts []device.Addr    // lowest address of each leaf; arbitrary for an empty one
	bounds []device.Size    // of each leaf
	groups []device.Size    // maximum of the bounds of each groupLeaves leaves
	spare  [][]AddrEntry[V] // empty leaves, for reuse
	count  int
	// Nth remembers a leaf and the number of entries below it, so that ascending calls cost O(1).
	finger, below int
}

// AddrPos is the position of an entry, or a position between entries. It is valid until the list
// changes.
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

// Bytes returns the host memory of a list with values of value bytes, unused capacity included.
// O(leaves).
func (l *AddrList[V]) Bytes(value device.Size) device.Size {
	rows, entries := cap(l.leaves)+cap(l.spare), 0
	for _, set := range [2][][]AddrEntry[V]{l.leaves, l.spare} {
		for _, f := range set {
			entries += cap(f)
		}
	}
	return device.Size(rows)*rowBytes + device.Size(entries)*(value+addrBytes)
}

// Search returns the position of the entry at a and true, or its insertion position and false.
func (l *AddrList[V]) Search(a device.Addr) (AddrPos, bool) {
	if len(l.leaves) == 0 {
		return AddrPos{}, false
	}
	// The outcome of a comparison is unpredictable, so each halving is arithmetic instead of a branch.
	j := 0 // the leaf that starts at or below a
	for n := len(l.firsts); n > 1; {
		half := n / 2
		j += half & (below(a, l.firsts[j+half]) - 1)
		n -= half
	}
	f := l.leaves[j]
	i, n := 0, len(f)
	for n > 1 {
		half := n / 2
		i += half & -below(f[i+half-1].Addr, a)
		n -= half
	}
	if n > 0 {
		i += below(f[i].Addr, a)
	}
	return AddrPos{j, i}, i < len(f) && f[i].Addr == a
}

// below returns 1 if a < b, else 0, without a branch.
func below(a, b device.Addr) int {
	_, borrow := bits.Sub64(uint64(a), uint64(b), 0)
	return int(borrow)
}

// End returns the position after the last entry.
func (l *AddrList[V]) End() AddrPos {
	if len(l.leaves) == 0 {
		return AddrPos{}
	}
	last := len(l.leaves) - 1
	return AddrPos{last, len(l.leaves[last])}
}

// Holds reports whether there is an entry at p.
func (l *AddrList[V]) Holds(p AddrPos) bool {
	return p.Leaf < len(l.leaves) && p.At < len(l.leaves[p.Leaf])
}

// Entry returns the entry at p.
//
// Precondition: Holds(p).
func (l *AddrList[V]) Entry(p AddrPos) AddrEntry[V] { return l.leaves[p.Leaf][p.At] }

// Below returns the entry before position p, if there is one.
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

// Floor returns the position of the highest entry at or below a, or the lowest position and false.
func (l *AddrList[V]) Floor(a device.Addr) (p AddrPos, ok bool) {
	p, ok = l.Search(a)
	if !ok && p.At > 0 { // Search looks in the leaf that starts at or below a, if there is one
		p.At--
		ok = true
	}
	return p, ok
}

// Above returns p if it holds an entry, otherwise the position of the next entry. At the end Holds
// is false there.
func (l *AddrList[V]) Above(p AddrPos) AddrPos {
	if p.Leaf < len(l.leaves) && p.At >= len(l.leaves[p.Leaf]) {
		return AddrPos{p.Leaf + 1, 0}
	}
	return p
}

// Next returns the position of the entry after p. At the end Holds is false there.
//
// Precondition: Holds(p).
func (l *AddrList[V]) Next(p AddrPos) AddrPos { return l.Above(AddrPos{p.Leaf, p.At + 1}) }

// Set replaces the entry at p.
//
// Precondition: Holds(p), and the new address keeps the order.
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

// Nth returns the position of the entry with i entries below it. Ascending calls cost O(1), others
// O(leaves).
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

// All yields every entry by address. The list must not change during the iteration.
func (l *AddrList[V]) All(yield func(AddrEntry[V]) bool) {
	for _, f := range l.leaves {
		for _, e := range f {
			if !yield(e) {
				return
			}
		}
	}
}

// Insert inserts an entry at a position and returns its position afterwards. In steady state
// nothing is allocated.
//
// Precondition: p is a position of this list and keeps the order of addresses.
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

// Delete removes the entry at p and returns the position of the next one, or End.
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

// changed updates the finger after a change in leaf j or above.
func (l *AddrList[V]) changed(j int) {
	if l.finger > j {
		l.finger, l.below = 0, 0
	}
}

// cut splits the full leaf of p and returns the new position of p.
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

// shrink joins the small leaf of p with a neighbor if both fit, or if the leaf is empty, and
// returns the new position of p.
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
