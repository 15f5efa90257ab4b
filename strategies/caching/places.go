package caching

import (
	"cmp"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// hole is a free chunk of a walk.
type hole struct {
	alloc.Chunk
	reach device.Size // its bytes, and of the unmapped chunk that follows it
}

// places promises the placement of a request from a walk alone. It uses no index, link or counter,
// so it does not share their faults. For the same reason it computes sizes by division instead of
// masks and sorts each time. It costs O(chunks log chunks) and is for tests.
//
// It does not predict the address of a new segment, the result after a refusal, or decisions by
// age.
func (s *settings) places(walk []alloc.Chunk, r alloc.Request, into alloc.PoolID) promise.Placement {
	n := s.sizeFor(r.Size)
	shelf, ok := segmentsOf(walk, r.Stream, into, n <= mostSmall)
	if !ok {
		return promise.Placement{}
	}
	if b, ok := s.serving(shelf, n); ok {
		return promise.Placement{Addr: b.Addr, Size: s.cut(b.Size, n)}
	}
	if s.expandable {
		return s.growing(shelf, n)
	}
	// No held chunk serves, so a segment is reserved, and the block is its low end.
	size := s.largeSegment
	switch {
	case n <= mostSmall:
		size = smallSegment
	case n >= leastAlone:
		size = (n + aloneQuantum - 1) / aloneQuantum * aloneQuantum
	}
	return promise.Placement{Size: s.cut(size, n), Takes: size}
}

// sizeFor returns the rounded size of a request: the next step above the power of two below it. If
// there are no steps, or they are smaller than the quantum, it is the next multiple of the quantum.
func (s *settings) sizeFor(n device.Size) device.Size {
	interval := 0
	for interval < intervals-1 && n>>(firstInterval+interval+1) > 0 {
		interval++
	}
	steps := s.divisions[interval]
	if steps <= 1 || n <= quantum*steps {
		return (n + quantum - 1) / quantum * quantum
	}
	above := promise.PowerOfTwo(n, quantum)
	below := above / 2
	step := below / steps
	if n == above || step == 0 {
		return above
	}
	return below + (n-below+step-1)/step*step
}

// segmentsOf returns the chunks of the segments for small or large blocks of a stream and pool. It
// fails if a segment without memory might be one of them, because such a segment shows no stream.
func segmentsOf(walk []alloc.Chunk, stream device.Stream, pool alloc.PoolID, small bool) (all []alloc.Chunk, ok bool) {
	hasStream := func(c alloc.Chunk) bool { return c.State != alloc.Unmapped && c.State != alloc.Slack }
	for len(walk) > 0 {
		region := walk[0].Region
		end := slices.IndexFunc(walk, func(c alloc.Chunk) bool { return c.Region != region })
		if end < 0 {
			end = len(walk)
		}
		segment := walk[:end]
		walk = walk[end:]
		if c := segment[0]; c.Pool != pool || (c.Class == power.ClassSmall) != small {
			continue
		}
		// All chunks of a segment are of one stream. An unmapped chunk shows none.
		switch i := slices.IndexFunc(segment, hasStream); {
		case i < 0:
			return nil, false
		case segment[i].Stream == stream:
			all = append(all, segment...)
		}
	}
	return all, true
}

// serving returns the free chunk that serves a rounded size: the smallest that is large enough, of
// equals the lowest. To a chunk of an expandable segment the next one by size is preferred while
// its reach is smaller, or always without expandable_segments. If the chunk found is unsplittable
// and too large for the request, no other is tried.
func (s *settings) serving(shelf []alloc.Chunk, n device.Size) (alloc.Chunk, bool) {
	var holes []hole
	for i, c := range shelf {
		if c.State != alloc.Free || c.Size < n {
			continue
		}
		h := hole{c, c.Size}
		if i+1 < len(shelf) && shelf[i+1].Region == c.Region && shelf[i+1].State == alloc.Unmapped {
			h.reach += shelf[i+1].Size
		}
		holes = append(holes, h)
	}
	slices.SortFunc(holes, func(a, b hole) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.Addr, b.Addr))
	})
	for i, h := range holes {
		if h.Owner == power.OwnerExpandable && (!s.expandable || i+1 < len(holes) && holes[i+1].reach < h.reach) {
			continue
		}
		if n < s.maxSplit {
			return h.Chunk, h.Size < s.maxSplit
		}
		return h.Chunk, h.Size-n < s.maxRounding
	}
	return alloc.Chunk{}, false
}

// cut returns the bytes of the block that a rounded size gets from a chunk.
func (s *settings) cut(size, n device.Size) device.Size {
	switch rest := size - n; {
	case n <= mostSmall || s.expandable:
		return n
	case n < s.maxSplit && rest > mostTail:
		return n
	}
	return size
}

// growing returns the placement of a request for which memory is mapped: at the first place that is
// large enough, in whole pages, and only the pages that are missing there.
func (s *settings) growing(shelf []alloc.Chunk, n device.Size) promise.Placement {
	page := s.largeSegment
	if n <= mostSmall {
		page = smallSegment
	}
	for i, c := range shelf {
		if c.State != alloc.Unmapped {
			continue
		}
		// The free chunk before it is used up first, so that less has to be mapped.
		if i > 0 && shelf[i-1].Region == c.Region && shelf[i-1].State == alloc.Free {
			i--
		}
		p := promise.Placement{Addr: shelf[i].Addr, Size: n}
		// Free chunks count as they are, unmapped ones by the pages that are still missing then: a page
		// that is begun is mapped whole, as long as the range has it.
		var have device.Size
		for _, next := range shelf[i:] {
			if have >= n || next.Region != c.Region || next.State != alloc.Free && next.State != alloc.Unmapped {
				break
			}
			gain := next.Size
			if next.State == alloc.Unmapped {
				gain = min((n-have+page-1)/page*page, next.Size)
				p.Takes += gain
			}
			have += gain
		}
		if have >= n {
			return p
		}
	}
	// A new range has no memory yet; the block lies at its start.
	return promise.Placement{Size: n, Takes: (n + page - 1) / page * page}
}

// returns orders segments that are released together: in the default pool large before small ones,
// in private pools the other way round, expandable ones last, then by stream, size and address.
func returns(a, b alloc.Chunk) int {
	kinds := cmp.Compare(a.Class, b.Class)
	if a.Pool == 0 {
		kinds = -kinds
	}
	return cmp.Or(cmp.Compare(a.Pool, b.Pool), kinds, cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Stream, b.Stream),
		promise.BySizeThenAddress(a, b))
}
