package freetree

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

const (
	line    = 8          // sizes in a cache line
	fanout  = 4 * line   // keys in a leaf, children of an inner node
	minFill = fanout / 4 // fewer are too few for a node that is not the root

	// maxMerged is the most that a merge may leave in a node: an eighth stays free, so that
	// the next insertion does not split it again.
	maxMerged = fanout - fanout/8

	// maxHeight bounds the levels above the leaves. An inner node that is not the root has
	// at least 8 children, so 2^32 entries, the most that handles can tell apart, take 10.
	maxHeight = 12

	// Bytes of the two kinds of node: 8 + 8 + 4 a key, and the links. A test compares them
	// with what the compiler makes of the types.
	leafBytes  = fanout*20 + 16
	innerBytes = fanout*20 + 8
)

// none is the index of no node.
const none = ^uint32(0)

// leaf is a node of the lowest level.
type leaf struct {
	sizes      [fanout]device.Size
	addrs      [fanout]device.Addr
	handles    [fanout]uint32
	n          uint32 // entries in use
	prev, next uint32 // neighbours in order; next also links spare leaves
}

// inner is a node above the leaves. Slot i holds child i and its separator.
type inner struct {
	sizes [fanout]device.Size
	addrs [fanout]device.Addr
	kids  [fanout]uint32 // kids[0] also links spare nodes
	n     uint32         // children in use
}

// search returns the first of the n slots whose key is not below (size, addr), n if there
// is none.
//
// It counts the sizes below: first the last one of each cache line, then those of one
// line. A binary search needs fewer comparisons, but which way each goes is a coin toss
// for the branch predictor and, without branches, each waits for the line of the one
// before; counting has no branches and fetches the lines of a node side by side. Slots
// beyond n hold the largest size, so the counts need no bound.
func search(sizes *[fanout]device.Size, addrs *[fanout]device.Addr, n uint32, size device.Size, addr device.Addr) uint32 {
	at := below(sizes[line-1], size) + below(sizes[2*line-1], size) + below(sizes[3*line-1], size)
	block := (*[line]device.Size)(sizes[at*line%fanout:])
	at *= line
	for _, s := range block {
		at += below(s, size)
	}
	if at < n && sizes[at%fanout] == size && addrs[at%fanout] < addr {
		return searchTies(sizes, addrs, at+1, n, size, addr)
	}
	return at
}

// below returns 1 if a < b, else 0, without a branch.
func below(a, b device.Size) uint32 {
	_, borrow := bits.Sub64(uint64(a), uint64(b), 0)
	return uint32(borrow)
}

// searchTies is search by the whole key, from slot lo.
func searchTies(sizes *[fanout]device.Size, addrs *[fanout]device.Addr, lo, n uint32, size device.Size, addr device.Addr) uint32 {
	for lo < n {
		mid := (lo + n) / 2
		if sizes[mid%fanout] == size && addrs[mid%fanout] < addr {
			lo = mid + 1
		} else {
			n = mid
		}
	}
	return lo
}

// vacate gives the slots [from, to) the largest size, as search wants it of unused ones.
func vacate(sizes *[fanout]device.Size, from, to uint32) {
	for i := from; i < to; i++ {
		sizes[i] = ^device.Size(0)
	}
}

// find returns the position of the first entry not below the key.
func (l *leaf) find(size device.Size, addr device.Addr) uint32 {
	return search(&l.sizes, &l.addrs, l.n, size, addr)
}

// find returns the child whose range holds the key: the last whose separator is not above it.
func (in *inner) find(size device.Size, addr device.Addr) uint32 {
	i := search(&in.sizes, &in.addrs, in.n, size, addr)
	if i == 0 || i < in.n && in.sizes[i] == size && in.addrs[i] == addr {
		return i // below every separator is the range of the first child, too
	}
	return i - 1
}

// insert opens slot i and fills it. The three moves cost more than the search in a full
// node, which is why nodes are not wider.
//
// Precondition: the leaf is not full.
func (l *leaf) insert(i uint32, e Entry) {
	n := l.n
	if i < n { // the remainder of the largest chunk often stays the largest
		copy(l.sizes[i+1:n+1], l.sizes[i:n])
		copy(l.addrs[i+1:n+1], l.addrs[i:n])
		copy(l.handles[i+1:n+1], l.handles[i:n])
	}
	l.sizes[i], l.addrs[i], l.handles[i] = e.Size, e.Addr, e.Handle
	l.n = n + 1
}

// remove closes slot i.
func (l *leaf) remove(i uint32) {
	n := l.n
	if i < n-1 {
		copy(l.sizes[i:n-1], l.sizes[i+1:n])
		copy(l.addrs[i:n-1], l.addrs[i+1:n])
		copy(l.handles[i:n-1], l.handles[i+1:n])
	}
	l.sizes[n-1] = ^device.Size(0)
	l.n = n - 1
}

// entry returns what slot i holds.
func (l *leaf) entry(i uint32) Entry { return Entry{l.sizes[i], l.addrs[i], l.handles[i]} }

// take moves the first k entries of from, its right neighbour, to the end of l.
func (l *leaf) take(from *leaf, k uint32) {
	copy(l.sizes[l.n:], from.sizes[:k])
	copy(l.addrs[l.n:], from.addrs[:k])
	copy(l.handles[l.n:], from.handles[:k])
	copy(from.sizes[:], from.sizes[k:from.n])
	copy(from.addrs[:], from.addrs[k:from.n])
	copy(from.handles[:], from.handles[k:from.n])
	vacate(&from.sizes, from.n-k, from.n)
	l.n += k
	from.n -= k
}

// give moves the last k entries of l to the front of to, its right neighbour.
func (l *leaf) give(to *leaf, k uint32) {
	copy(to.sizes[k:], to.sizes[:to.n])
	copy(to.addrs[k:], to.addrs[:to.n])
	copy(to.handles[k:], to.handles[:to.n])
	copy(to.sizes[:k], l.sizes[l.n-k:l.n])
	copy(to.addrs[:k], l.addrs[l.n-k:l.n])
	copy(to.handles[:k], l.handles[l.n-k:l.n])
	vacate(&l.sizes, l.n-k, l.n)
	l.n -= k
	to.n += k
}

// insert opens slot i and fills it with a child and its separator.
//
// Precondition: the node is not full.
func (in *inner) insert(i uint32, size device.Size, addr device.Addr, kid uint32) {
	n := in.n
	copy(in.sizes[i+1:n+1], in.sizes[i:n])
	copy(in.addrs[i+1:n+1], in.addrs[i:n])
	copy(in.kids[i+1:n+1], in.kids[i:n])
	in.sizes[i], in.addrs[i], in.kids[i] = size, addr, kid
	in.n = n + 1
}

// remove closes slot i.
func (in *inner) remove(i uint32) {
	n := in.n
	copy(in.sizes[i:n-1], in.sizes[i+1:n])
	copy(in.addrs[i:n-1], in.addrs[i+1:n])
	copy(in.kids[i:n-1], in.kids[i+1:n])
	in.sizes[n-1] = ^device.Size(0)
	in.n = n - 1
}

// take moves the first k children of from, its right neighbour, to the end of in. The
// separator of a first child is not kept, so the caller passes that of from, which its
// parent holds; the new one of from is its slot 0 afterwards.
func (in *inner) take(from *inner, k uint32, size device.Size, addr device.Addr) {
	from.sizes[0], from.addrs[0] = size, addr
	copy(in.sizes[in.n:], from.sizes[:k])
	copy(in.addrs[in.n:], from.addrs[:k])
	copy(in.kids[in.n:], from.kids[:k])
	copy(from.sizes[:], from.sizes[k:from.n])
	copy(from.addrs[:], from.addrs[k:from.n])
	copy(from.kids[:], from.kids[k:from.n])
	vacate(&from.sizes, from.n-k, from.n)
	in.n += k
	from.n -= k
}

// give moves the last k children of in to the front of to, its right neighbour, whose
// separator the caller passes; the new one is its slot 0 afterwards.
func (in *inner) give(to *inner, k uint32, size device.Size, addr device.Addr) {
	to.sizes[0], to.addrs[0] = size, addr
	copy(to.sizes[k:], to.sizes[:to.n])
	copy(to.addrs[k:], to.addrs[:to.n])
	copy(to.kids[k:], to.kids[:to.n])
	copy(to.sizes[:k], in.sizes[in.n-k:in.n])
	copy(to.addrs[:k], in.addrs[in.n-k:in.n])
	copy(to.kids[:k], in.kids[in.n-k:in.n])
	vacate(&in.sizes, in.n-k, in.n)
	in.n -= k
	to.n += k
}
