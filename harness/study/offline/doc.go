// Package offline packs buffers whose lifetimes are known in advance, to find the least memory a
// trace needs. The lower bound, the peak of live bytes, ignores placement and may not be
// attainable.
//
// # The problem
//
// A buffer is live in [Lower, Upper) and needs Size bytes at a fixed offset. Buffers that are live
// at the same time must not overlap. The height, the end of the highest buffer, is minimised. The
// problem is known as dynamic storage allocation or offline memory planning; it is NP-complete.
//
// # Greedy
//
// [Problem.Greedy] sorts the buffers and places each at the lowest free offset, with kit/packing,
// which handles a million buffers by keeping the occupied ranges in a tree over time.
//
// # Search
//
// [Problem.Search] decides whether a capacity suffices. It places buffers from the bottom up, each
// directly on top of others, and backtracks. It prunes by:
//
//   - Canonical order. Buffers are placed by ascending offset, ties by rank, so that each placement
//     is found once. A buffer that was passed over at its lowest offset must be raised by a later
//     one.
//   - Sections. Time is divided into the maximal sets of buffers that are live together. The open
//     buffers of a section must fit between their lowest offset and the capacity.
//   - Floors. Later buffers lie no lower than the last one, and passed-over buffers at least the
//     size of the smallest open one higher.
//   - Dominance. No buffer is placed so high that another open one would fit entirely below it.
//   - Isolated buffers. If no open buffer overlaps a buffer, its alternatives are not tried.
//   - Parts. If no open buffer spans a moment, both sides are solved separately, the smaller first.
//   - Refuted states. The rest of a search depends only on the open buffers, their lowest offsets,
//     and which were passed over. Refuted states are not searched again; buffers of equal life,
//     size and alignment are interchangeable.
//   - Turns. Three static orders alternate, with twice the steps in each round.
//
// States are identified by 128-bit hashes, so a proof of a bound is correct unless there is a
// collision. Placements do not depend on this: [Problem.Validate] checks them against the buffers
// alone.
//
// # Sources
//
// Canonical placements, sections, dominance, parts and turns are from MiniMalloc (Moffitt,
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023). Our additions are sections at births before deaths only, floors of passed-over buffers,
// refuted states with classes of buffers, smallest part first, the tree over time, and repacking;
// docs/offline.md has figures of each.
package offline
