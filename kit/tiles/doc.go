// Package tiles cuts regions into chunks of any size and merges free neighbors. It is shared by the
// strategies that differ only in how they find a free chunk.
//
// # Data structure
//
// [Table] holds the chunks of all regions, one [Row] of 32 bytes each, named by 32-bit handles. A
// row knows its neighbors in the region (boundary tags beside the memory), so a freed chunk finds
// them without a search.
//
// The last eight bytes of a row have two uses. A free chunk has the two links of a ring of free
// chunks. A live chunk has the next handle in the bucket of its address, and its size less the
// requested bytes. A difference beyond 32 bits, and the labels of callers, lie in a [Column], which
// takes no memory until something is set in it.
//
// # Branches
//
// The branch predictor cannot foresee whether a neighbor is free or alone in its ring. So a
// neighbor that is not free is read as [None], a row that can be merge, unlinked and retired
// without effect, and rings have anchors. This saved a tenth of a pair of calls at 1e3 live blocks.
//
// The left of two merged chunks survives, so the first chunk of a region keeps its handle, and the
// region is labeled with it. A region is empty when one free chunk fills it, which needs no count
// of live chunks.
//
// # Core and index
//
// [Core] is the table with the regions and their growth (kit/regions), the map from addresses to
// live chunks (kit/index), the counters and the last refusal. [View] is its public part. A strategy
// adds an [Index] of the free chunks and the search:
//
//	core.Accepts(&r)                 // otherwise return core.Refuse(&r)
//	n := core.Round(r.Size)
//	h := index.find(n)               // taken out of the index
//	h, err = core.Grow(&r, n)        // if there was no chunk
//	core.Fills(h) && core.Occupy(h)  // the region is not empty any more
//	index.Insert(core.Split(h, n))   // the remainder
//	return core.Grant(h, &r), nil
//
// and back:
//
//	prev, h, next, err := core.Release(at)
//	h = core.Join(prev, h, next)     // once they are taken out of the index
//	core.Fills(h) && core.Vacate(h)  // this may release the region
//	index.Insert(h)
//
// None of these calls goes through an interface. The core itself calls the index only for walks,
// checks, trims and refusals. Every step is O(1), except that a region which becomes or ceases to
// be empty is looked up in O(log regions). Nothing is allocated unless the table or the map grow.
//
// # Invariants
//
// Check reports them with the name of the strategy in front.
//
// Invariant K1: the chunks of a region tile it in whole quanta, except for less than one quantum at
// its end; links are symmetric.
// Invariant K2: no two adjacent chunks are free.
// Invariant K3: the requested bytes of a live chunk are from 1 to its size.
// Invariant K4: the map from addresses holds exactly the live chunks.
// Invariant K5: every row is a chunk of a region, the anchor of a ring, or retired.
// Invariant K6: the empty bytes are the bytes of the regions without a live chunk.
// Invariant K7: the counters match the walk.
//
// Source: Knuth, The Art of Computer Programming, volume 1, section 2.5, algorithm C, for boundary
// tags.
package tiles
