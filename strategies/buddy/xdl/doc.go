// Package xdl is the buddy allocator of Alibaba's X-DeepLearning
// (xdl/core/framework/buddy_allocator), placement by placement.
//
// # Data structure
//
// A region is a power-of-two number of blocks, and a request gets a power of two of them, 2^k at
// order k, naturally aligned.
//
// Each region has a bitmap with one bit per block, in words of 64 blocks, and above it a summary
// tree: one byte per node of a complete binary tree over the words, in level order, root at 1,
// children of i at 2i and 2i+1. The byte of a node is the order of its longest run plus one: the
// largest naturally aligned free run inside the node's range; 0 if it has no free block. Inside a
// word, the longest run and the lowest run of an order are computed from the bits by a few shifts.
// The original's tree goes down to single blocks, six levels further, with 35 times the host
// memory.
//
// A granted run of up to 64 blocks clears its bits and sets the bit of its first block in
// a second bitmap. A longer one is marked by its node alone: the byte reads 0 while
// everything below still reads wholly free. A node that is full because of grants below it
// has two children that read 0, so the two cases cannot be confused.
//
// The roots are kept a second time side by side, so that the search over regions reads
// one cache line for 64 regions. A table of live blocks, by address, holds each block's
// request, and an atlas leads from an address to its region, so that a free neither
// searches the regions nor climbs from a leaf.
//
// # Search, split and merge
//
// It is address-ordered first fit: the oldest region whose root has a run
// of order k or longer, and in it the lowest run of order k, found by going left whenever
// the left half can serve. A large run is split even if a run of order k is free higher up.
//
// Splitting is implicit. Granting and freeing renew the bytes on the way from the word, or
// from the node of a longer run, to the root, and stop at the first that does not change.
// Two wholly free halves make a wholly free whole, so merging is immediate and complete.
//
// # Cost
//
// Alloc reads one byte per region, both read or write one byte per level of the tree. Words
// and tree take 18 bytes of host memory per 64 blocks of a region, 18 KiB for 1 GiB in
// blocks of 16 KiB; a live block takes 11 to 15 bytes in a table, a region 128 in the atlas.
//
// # Growth and alignment
//
// When no region serves, another one of RegionBytes is reserved. Regions are never released
// before Close, empty or not.
//
// A block of order k starts at a multiple of its size in its region. Regions have the alignment of
// [regions.Align], at most 2 MiB. So every alignment up to the smaller of the two is honored in
// every state, and larger ones are refused. Alignment never changes the placement.
//
// # Locks
//
// The original has one mutex for everything, and so has this one with Config.Locks.
//
// # Invariants
//
// Invariant U1: the table of live blocks and the granted runs of the regions are the same set.
// Invariant U2: a block of order k starts at a multiple of BlockBytes<<k in its region.
// Invariant U3: every node below a granted or wholly free node reads as wholly free.
// Invariant U4: a node whose children are both wholly free is wholly free or granted.
// Invariant U5 (summary is the longest free run): the byte of a word is its longest free aligned
// run; the byte of another node is the larger of its children, unless U4 holds.
// Invariant U6: the copied roots equal the roots of the trees.
// Invariant U7: the regions by age, by address and in the atlas are the same set.
// Invariant U8: the counters match the walk.
// Invariant U9: in a word, first blocks of granted runs are not free.
//
// # Departures
//
// The allocator departs where the original is wrong or ends the process:
//
//   - a size of zero and a size above RegionBytes are ErrInvalidRequest, where the
//     original returns null or aborts;
//   - a device refusal is ErrOutOfMemory and changes nothing;
//   - freeing what is not the start of a live block is ErrInvalidFree, where the original
//     accepts interior, repeated and stale addresses and may release another block;
//   - parameters are checked before they are used, and more than 2^30 blocks a region are
//     refused; the original divides by zero and overruns its arrays;
//   - a free finds its region in O(1), where the original searches.
package xdl
