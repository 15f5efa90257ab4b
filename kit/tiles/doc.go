// Package tiles is the part that strategies share which cut regions into chunks of any size,
// merge neighbours when they are free, and differ in how they find a free chunk.
//
// # Data structure
//
// [Table] holds the chunks of all regions, one [Row] of 32 bytes each, named by 32-bit
// handles. A row knows the chunk before and behind it in its region: boundary tags, kept
// beside the memory because device memory holds no metadata. So a freed chunk finds its
// neighbours, and a chunk its region's end, without a search.
//
// The last eight bytes of a row have two uses. A free chunk has the two links of a ring of
// free chunks there, for strategies that keep lists; a live one the handle of the next chunk
// in the bucket of its address, and the bytes that it was granted beyond those requested,
// from which the requested size follows. A slack that does not fit 32 bits lies in a [Column],
// and so do the labels that callers give. A column takes no memory until something is set in
// it, and strategies may have columns of their own.
//
// # Branches
//
// Whether a freed block has free neighbours, and whether they are alone in their rings, are
// toss-ups, and a branch that goes the wrong way costs as much as thirty instructions. So
// neighbours that are not free are read as [None], a row that can be joined, taken out of its
// ring and retired like any other without effect, and rings have anchors, so that none of
// their chunks is a special case. It took a tenth off a pair at 1e3 live blocks.
//
// A row does not name its region: the links need the room. The first chunk of a region never
// changes its handle, because the left of two merged chunks survives, and so the region names
// that chunk; from an address the region is found among the regions. A region is empty when
// one free chunk without neighbours fills it, which needs no count of live chunks.
//
// # Core and index
//
// [Core] is the table with what belongs to it: the regions and how they grow (kit/regions),
// the map from addresses to live chunks (kit/index), the counters, the last refusal.
// [View] is what users see of it. A strategy adds an [Index] of the free chunks and the way
// from a request to a chunk:
//
//	core.Judge(&r)                   // or a mistake of the caller
//	n := core.Round(r.Size)
//	h := index.find(n)               // taken out of the index
//	h, err = core.Grow(&r, n)        // if there was none
//	core.Fills(h) && core.Occupy(h)  // the region is not empty any more
//	index.Insert(core.Split(h, n))   // what is left
//	return core.Grant(h, &r), nil
//
// and back:
//
//	prev, h, next, err := core.Release(at)
//	h = core.Join(prev, h, next)     // when they are taken out of the index
//	core.Fills(h) && core.Vacate(h)  // perhaps the region goes back
//	index.Insert(h)
//
// None of these calls goes through an interface. The core calls the index where time does
// not matter: for walks, checks, trims and refusals.
//
// # Cost
//
// Every step is O(1), but for a region that becomes empty or ceases to be, which is looked
// up in O(log regions). Nothing is allocated unless the table or the map grow.
//
// # Invariants
//
// Check reports them with the name of the strategy in front.
//
// Invariant K1: the chunks of a region tile it in whole quanta but for what is less than one
// at its end; each names the one before and the one behind it.
// Invariant K2: no two neighbours are both free.
// Invariant K3: a live chunk was requested with at least one byte and at most its size.
// Invariant K4: the map from addresses holds exactly the live chunks.
// Invariant K5: every row is a chunk of a region, the anchor of a ring, or waits in the list of
// retired ones.
// Invariant K6: the bytes counted as empty are those of the regions without a live chunk.
// Invariant K7: the counters are what the walk shows.
//
// # Source
//
// Knuth, The Art of Computer Programming, volume 1, section 2.5, algorithm C, for boundary
// tags.
package tiles
