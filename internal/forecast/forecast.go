// Package forecast computes from a walk which memory would be free after some frees. Strategies
// implement power.CanPlace with it.
package forecast

import (
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// Walk yields the chunks of a strategy, as [alloc.Inspector].Walk.
type Walk = func(yield func(alloc.Chunk) bool)

// Placer predicts frees, merges and placements from the promises of a strategy.
type Placer struct {
	// Most is the largest request in bytes.
	Most device.Size
	// Promises are the strategy's. ZeroSize and Honours define legal requests, MustMerge the merges,
	// and Serves the chunks that serve a request; nil means the default.
	Promises promise.Set
	// Freed yields, by address, the free chunks that a live chunk becomes when it is freed. It yields
	// none if the free is delayed or the chunk is cached. Nil: one free chunk of the same range.
	Freed func(c alloc.Chunk, yield func(alloc.Chunk))
	// Join returns the chunk that two merging neighbours become. Nil: the lower one, extended.
	Join func(left, right alloc.Chunk) alloc.Chunk
}

// Legal reports whether a request can be granted at all.
func (p *Placer) Legal(r alloc.Request) bool {
	switch {
	case r.Size == 0 && !p.Promises.ZeroSize, r.Size > p.Most:
		return false
	case r.Align == 0:
		return true
	}
	return device.IsPowerOfTwo(r.Align) && (p.Promises.Honours == nil || p.Promises.Honours(r))
}

// CanPlace reports whether a free chunk would serve a legal request after the live blocks that
// start at the addresses were freed. It costs O(chunks log addresses) and allocates a copy
// of the addresses.
func (p *Placer) CanPlace(walk Walk, r alloc.Request, freed []device.Addr) bool {
	if !p.Legal(r) || p.Promises.Serves == nil {
		return false
	}
	found := false
	p.Holes(walk, freed, func(c alloc.Chunk) bool {
		found = p.Promises.Serves(c, r)
		return !found
	})
	return found
}

// Holes yields the chunks that would be free after the live blocks that start at the addresses were
// freed. Chunks merge pairwise, so that chains of buddies merge as runs of neighbours do.
func (p *Placer) Holes(walk Walk, freed []device.Addr, yield func(alloc.Chunk) bool) {
	freed = slices.Clone(freed)
	slices.Sort(freed)
	var run []alloc.Chunk // adjacent free chunks that did not merge
	end := func() bool {
		for _, c := range run {
			if !yield(c) {
				return false
			}
		}
		run = run[:0]
		return true
	}
	var added bool
	add := func(c alloc.Chunk) { run, added = p.push(run, c), true }
	for c := range walk {
		if n := len(run); n > 0 && run[n-1].Region != c.Region && !end() {
			return
		}
		if c.State == alloc.Free {
			add(c)
			continue
		}
		added = false
		if _, isFreed := slices.BinarySearch(freed, c.Addr); isFreed && c.State == alloc.Live {
			p.free(c, add)
		}
		if !added && !end() {
			return
		}
	}
	end()
}

func (p *Placer) free(c alloc.Chunk, yield func(alloc.Chunk)) {
	c.State, c.Requested, c.Tag = alloc.Free, 0, 0
	if p.Freed == nil {
		yield(c)
		return
	}
	p.Freed(c, yield)
}

// push adds a free chunk to those below it and merges it with them.
func (p *Placer) push(run []alloc.Chunk, c alloc.Chunk) []alloc.Chunk {
	for n := len(run); n > 0 && p.merges(run[n-1], c); n = len(run) {
		left := run[n-1]
		if p.Join != nil {
			c = p.Join(left, c)
		} else {
			left.Size += c.Size
			c = left
		}
		run = run[:n-1]
	}
	return append(run, c)
}

// merges reports whether two free chunks of one region become one.
func (p *Placer) merges(left, right alloc.Chunk) bool {
	return left.End() == right.Addr && p.Promises.MustMerge != nil && p.Promises.MustMerge(left, right)
}
