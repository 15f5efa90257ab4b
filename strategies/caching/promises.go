package caching

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/device"
)

// Promises implements [promise.Promiser]. Placements are verified with the vectors of the original.
// The promises are about a walk: sizes, merging, order and, if mended, true refusals.
func (c Config) Promises() promise.Set {
	plan, err := c.plan()
	if err != nil {
		return promise.Set{} // the configuration is invalid
	}
	return plan.promises(c.Rules, c.Mended)
}

// confs are settings that tests change to. Each differs from the defaults in another way; one is
// wrong.
var confs = []string{
	"", "max_split_size_mb:21", "max_split_size_mb:64,max_non_split_rounding_mb:32", "roundup_power2_divisions:4",
	"garbage_collection_threshold:0.4", "expandable_segments:True", "expandable_segments:False,max_split_size_mb:32",
	"per_process_memory_fraction", "max_split_size_mb:5",
}

// promises returns the promises while the present settings are in force.
func (p planned) promises(rules string, mended bool) promise.Set {
	set, err := p.present(rules)
	if err != nil {
		return promise.Set{}
	}
	made := promise.Set{
		// Segments begin at multiples of the quantum, and blocks are cut in multiples of it.
		Quantum:  quantum,
		Honours:  func(r alloc.Request) bool { return r.Align <= quantum },
		MaxGrant: set.mostGranted,
		// A segment belongs to one stream and pool, so all adjacent free blocks merge.
		MustMerge:       promise.MergeAll,
		ExactNeighbours: true,
		ClassOf:         set.classOf,
		SearchOrder: func(a, b alloc.Chunk) int {
			if a.Pool != b.Pool || a.Stream != b.Stream {
				return -1 // never compared: a request looks at one pool and stream
			}
			if set.ties != byAddress && a.Size == b.Size {
				return -1 // a walk does not show which was created first
			}
			return promise.BySizeThenAddress(a, b)
		},
		ReturnOrder:   returns,
		LastPoolFirst: set.lastBegunFirst,
		Fits:          set.serves,

		OneStreamCaptures: set.oneStreamCaptures,
		Boundaries: []device.Size{
			quantum, mostSmall, smallSegment, leastAlone, set.largeSegment - mostTail, set.largeSegment,
		},
	}
	// Lookups are refused around the unsplittable size.
	if set.maxSplit != ^device.Size(0) {
		made.Boundaries = append(made.Boundaries, set.maxSplit)
	}
	// Pages of large segments are the larger ones, and whole pages of them are whole pages of small
	// ones.
	if set.grew {
		made.Page = set.largeSegment
		for made.Page%smallSegment != 0 {
			made.Page *= 2
		}
	}
	made.Except = set.exceptions(mended)
	made.Confs = confs
	made.Changed = func(conf string) (promise.Set, bool) {
		next, _, err := p.change(conf, rules)
		return next.promises(rules, mended), err == nil
	}
	made.Places = set.places
	if set.gcThreshold != 0 && (set.limited || mended) {
		// Ages decide which segments are released before a reservation, and a walk does not show them.
		made.Places = func(walk []alloc.Chunk, r alloc.Request, into alloc.PoolID) promise.Placement {
			at := set.places(walk, r, into)
			if at.Takes != 0 {
				return promise.Placement{}
			}
			return at
		}
	}
	if set.ties != byAddress {
		// A walk does not show which block or segment was created first.
		made.Places, made.ReturnOrder = nil, nil
	}
	// After waiting and releasing, the original requests memory from the device only and does not
	// search free blocks again, so it may refuse a request that a retry would serve. A lookup among
	// growing segments may prefer a block with a smaller reach and then refuse it as unsplittable.
	if mended && !(set.expandable && set.maxSplit != ^device.Size(0)) {
		made.Serves = set.serves
	}
	return made
}

// classOf returns the class of a free chunk. It belongs to the segment, which a chunk alone cannot
// show. Without growing segments the size often implies it: smaller chunks are never split off
// large blocks, and larger ones do not fit a small segment.
func (s *settings) classOf(free alloc.Chunk) int32 {
	switch {
	case free.Size > smallSegment && !s.grew:
		return power.ClassLarge
	case isSmall(free.Size) && !s.grew:
		return power.ClassSmall
	}
	return min(max(free.Class, power.ClassSmall), power.ClassLarge)
}

// exceptions returns the invariants that the original breaks under these settings, and so does this
// package.
func (s *settings) exceptions(mended bool) (all []promise.Exception) {
	// The original may hold up to a page more than its bound. Segments that do not grow are whole
	// pages of a card, unless the settings give them an odd size.
	switch {
	case !s.limited:
	case s.grew:
		all = append(all, promise.Exception{Invariant: "I20",
			Reason: "the bound is compared with the size of the request, rounded, and whole pages are mapped for it"})
	case s.largeSegment%aloneQuantum != 0:
		all = append(all, promise.Exception{Invariant: "I20",
			Reason: "the bound is compared with the size of the segment, to which the device adds up to a page"})
	}
	collects := s.gcThreshold > 0 && (s.limited || mended)
	if s.maxSplit != ^device.Size(0) && !s.expandable && s.unstepped && !collects {
		all = append(all, promise.Exception{Invariant: "I44",
			Reason: "unsplittable blocks serve only requests a little smaller, so each size keeps the memory of its " +
				"peak"})
	}
	return all
}

// mostGranted returns the largest block that a request may be given. It is the rounded size where
// the remainder is always split off: for small blocks and in growing segments. A large block keeps
// a tail of up to 1 MiB, and an unsplittable block its whole size, which exceeds the request by
// less than the rounding.
func (s *settings) mostGranted(r alloc.Request) device.Size {
	if r.Size == 0 || r.Size > mostRequest {
		return 0
	}
	n := s.round(r.Size)
	switch {
	case isSmall(n) || s.expandable:
		return n
	case n < s.maxSplit:
		return n + mostTail
	}
	return n + min(s.maxRounding, mostRequest) - quantum
}

// serves reports whether a free block of the pool that a request goes to would serve it. The
// original compares only the first block that is large enough; if that block may not be taken, no
// larger one may.
func (s *settings) serves(free alloc.Chunk, r alloc.Request) bool {
	n := s.round(r.Size)
	switch {
	case free.Owner == power.OwnerExpandable && !s.expandable:
		return false
	case free.Stream != r.Stream || (free.Class == power.ClassSmall) != isSmall(n) || free.Size < n:
		return false
	case n < s.maxSplit:
		return free.Size < s.maxSplit
	}
	return free.Size-n < s.maxRounding
}
