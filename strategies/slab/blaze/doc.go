// Package blaze is the slab allocator of X-DeepLearning's inference engine
// (blaze/common/allocator.h), placement by placement: one free list per power of two, filled by
// cutting regions from the bottom up.
//
// # Data structure and search
//
// A request is rounded up to a power of two, its class. If the list of that class is not
// empty the block that was freed last is granted. Otherwise a block is cut from the newest
// region. If too few bytes are left in it, they are lost forever, and a new region becomes the
// newest. A freed block goes to the list of its class. Blocks are never split or merged, so the
// memory of one class never serves another. [New] reserves the first region.
//
// The number of a block is its place in the order of cutting, which never changes. Records are an
// array by number, so they are ordered by address within each region. Lists link numbers, and an
// index leads from addresses to numbers. The array grows with every block ever cut.
//
// # Cost
//
// A call costs O(1). Every block ever cut takes 40 bytes, and 9 to 14 in an index of its own.
//
// # Alignment
//
// An alignment is honored if every block has it in every state, and refused otherwise: up to
// MinClassBytes and up to the 2 MiB alignment of regions.
//
// # Invariants
//
// Invariant Z1: the blocks cut from a region tile it from its start without a gap; the rest is
// available in the newest region and lost in others.
// Invariant Z2: each block is live or exactly once in the list of its class.
// Invariant Z3: the set of classes with nonempty lists is exact.
// Invariant Z4: the index has every block.
// Invariant Z5: the regions by age and the regions by address are the same set.
// Invariant Z6: the counters match the walk.
//
// # Departures
//
// The allocator departs where the original is wrong or ends the process:
//
//   - a size above MaxClassBytes is ErrInvalidRequest, where the original indexes
//     past its table;
//   - a refused region changes nothing, where the original then grants live memory again;
//   - Free takes no size, since the block's own is known;
//   - freeing what is not the start of a live block is ErrInvalidFree, where the
//     original accepts it and corrupts its state;
//   - parameters are checked before they are used.
package blaze
