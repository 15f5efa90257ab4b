package caching

import (
	"github.com/vramyard/vramyard/device"
)

// tie is the rule that chooses among free blocks of one size. PyTorch changed it twice.
type tie uint8

const (
	byAddress tie = iota // the lowest address
	byBirth              // the block that was created first, wherever it lies now
	bySegment            // the segment that was created first, in it the lowest address
)

// segmentSpan bounds the addresses of one segment in the keys of bySegment, which leaves numbers
// for 16 million segments.
const segmentSpan = 40

// ties returns the rule of a set of rules.
func ties(rules string) tie {
	switch rules {
	case Rules212:
		return byBirth
	case Rules213:
		return bySegment
	}
	return byAddress
}

// key returns the place of a free block among those of its size.
func (a *Allocator) key(h handle) device.Addr {
	switch a.set.ties {
	case byBirth:
		return device.Addr(a.ranks[h])
	case bySegment:
		return device.Addr(a.ranks[h] + uint64(a.rows[h].addr))
	}
	return a.rows[h].addr
}

// rank stores the rank of a block: its number by birth, or what its address lacks of its key.
func (a *Allocator) rank(h handle, r uint64) {
	if int(h) >= len(a.ranks) {
		a.ranks = append(a.ranks, make([]uint64, len(a.rows)-len(a.ranks))...)
	}
	a.ranks[h] = r
}

// ranked ranks the block of a new segment.
func (a *Allocator) ranked(h handle) {
	a.births++
	switch a.set.ties {
	case byBirth:
		a.rank(h, a.births)
	case bySegment:
		a.rank(h, a.births<<segmentSpan-uint64(a.rows[h].addr))
	}
}

// divided ranks the two parts of a block that was split. In the original one part is a new block;
// the other, kept, is the block that was there.
func (a *Allocator) divided(low, high, kept handle) {
	switch a.set.ties {
	case byBirth:
		a.births++
		a.rank(high, a.births)
		if kept == high {
			a.ranks[low], a.ranks[high] = a.ranks[high], a.ranks[low]
		}
	case bySegment:
		a.rank(high, a.ranks[low])
	}
}

// merged ranks a block into which another one was merged that the original keeps instead.
func (a *Allocator) merged(into, kept handle) {
	if a.set.ties == byBirth {
		a.ranks[into] = a.ranks[kept]
	}
}
