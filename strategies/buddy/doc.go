// Package buddy places blocks that split in two and merge with the part they were split from.
//
// A region is cut into roots, which are blocks of the largest sizes that fit. A request gets
// the smallest block with room for it; if none is free, a larger one is split, and split
// again, and the parts that are not wanted stay free. A freed block merges with its buddy,
// the other part of the block that both were split from, as often as that is wholly free.
// Where the buddy is follows from where the block is, so merging takes no search. Rounding up
// to the sizes that there are is the price: with halves up to half of a block, and a quarter
// where all sizes are as likely.
//
// # Sizes
//
// A family of sizes is a table of classes, counted in units of Config.BlockBytes. One rule
// covers all of them: class i splits into class i-1 on the left and, on the right, what is
// left over, which is a class too.
//
//	binary     1 2 4 8 16 …          2^k = 2^(k-1) + 2^(k-1)
//	weighted   1 2 3 4 6 8 12 …      4·2^k = 3·2^k + 2^k,  3·2^k = 2·2^k + 2^k
//	fibonacci  1 2 3 5 8 13 …        F(n) = F(n-1) + F(n-2)
//	k4         1 … 8 10 12 14 16 …   m·2^j = (m-1)·2^j + 2^j, and so k8: 1 … 16 18 20 …
//
// More sizes waste less inside blocks and more between them: small right parts come up that
// nobody asks for. A region of any size is cut into the largest root that fits, the largest
// that fits the rest, and so on down to one unit; nothing but a tail below a unit is lost, and
// what lies beyond the units that are numbered: 2^31 with halves, 2^26 with Fibonacci sizes or
// placement "newest", 2^28 else. Config refuses regions so large, growth "doubling" may come
// to them.
//
// # Data structure
//
// For each region, and each class up to the largest that it has room for, there is a set of
// the free blocks, numbered by start in steps of the alignment that blocks of the class have.
// Up to 4096 numbers it is words of one store for all sets, with one above that tells which are
// not zero, as far as the highest member that it ever had, beyond that a set of kit/index,
// with more such levels, of which only the parts with a member take memory. With halves the twelve largest
// classes of a region are one such set, numbered as a binary tree from its root on, so that buddy and
// parent are a bit and a shift away, and what a free block merges with lies near it: the six largest
// classes share a word, the nine largest a cache line. Above, for each class,
// is the set of the regions that have such a block, numbered in the order of choice, and above
// that one bit for each class. What is granted leaves no mark: a table of the live blocks, by
// address, holds the request of each. The region follows from the address by package atlas:
// a label for each 32 MiB held, or sixteen where several regions share these.
//
// # Search
//
// Placement "smallest" takes the smallest class that serves and has a free block anywhere, the
// first region in the order of choice that has one, and there the lowest. "newest" takes the
// block freed last instead, by lists in 8 bytes a unit. "leftmost" takes the first region that
// has any block that serves, and there the lowest whatever its class; "top-down" the highest
// there, as a request with the hint for the high end does whatever the placement. The order of
// choice of regions is by age, by address, or by how full they are, in sixteen steps, among
// equals by age.
//
// # Split and merge
//
// From a larger block the way goes down into the smaller part that still serves, of equal ones
// the left; for the high end it is the right part whenever that serves. With trim, the tail that a block has beyond the request goes back at once in the
// largest blocks that it is made of; freeing takes the same way backwards. To find the buddy of
// a block, one descends from its root: to a unit leads exactly one way, whose right turns are
// found by size, and the left parts between need no step. With halves one bit is flipped.
//
// Coalescing "lazy" leaves a freed block unmerged while its class has fewer than Slack free
// ones, "failure" always; whatever could be merged then is before a region is asked for.
//
// # Cost
//
// A grant reads one word of classes, two sets and their summaries, and changes one set for each
// split; a free changes one for each merge, and without halves finds each way again. Neither
// depends on the number of regions. Only a region that comes before others in the order of
// choice numbers those anew: with the choice of the lowest, on a device that hands out lower
// and lower addresses, that is a step for each region held, at each device call.
//
// A region takes 128 bytes, and with halves 2 bits for each block that it has room for, of the
// smallest size of its twelve largest ones that ever was free there. Below those, and with other
// families, sets take 16 bytes for each region and class, and where blocks are or were free 2 bits
// a unit with halves, up to 3.5 without, but with Fibonacci sizes one for each
// class. A live block takes 11 to 15 bytes in a table, and 32 MiB held 4 to 68.
//
// # Growth
//
// Regions are sized by a policy of kit/regions. Requests above DirectBytes get a region of
// their size, rounded up to units; freed, it is kept for requests of at least eight ninths of it, up to
// DirectCacheBytes or, by default, while what is kept and in use comes to no more than a quarter
// above the most that was ever in use. The oldest goes back first. When the device or the limit refuses, every
// region without a live block goes back and it is asked again; then a request for less than its
// block tries a region of its own, and one above DirectBytes the pool.
//
// The defaults are those that carried the seven recorded traces on the least memory at little
// time, 4 MiB to a block of the pool: 1.02 times the lower bound, where bfc needs 1.07 and
// mode "xdl" 1.2 to 1.8. In one region for everything it is 1.28, and 1.21 with trim. With
// DirectBytes of 1 MiB it is 1.01, at a fifth more device calls; at 16 MiB 1.09.
//
// # Alignment
//
// Blocks start at multiples of BlockBytes from regions aligned to 2 MiB. An alignment beyond
// what blocks of the class have is served out of a larger block: of one as large as the
// alignment with halves, else of one with room to move the start up; the rest goes back. So
// any up to 2 MiB is honoured, and every other refused.
//
// # Mode "xdl"
//
// The rest is about the compat mode, type [Trees]. A region is a power-of-two number of blocks
// and a request gets a power of two of them, 2^k at order k, naturally aligned.
//
// Each region has a bitmap with one bit per block, in words of 64 blocks, and above it a
// summary tree: one byte per node of a complete binary tree over the words, in level
// order, root at 1, children of i at 2i and 2i+1. The byte of a node is one more than the
// order of its longest run: the largest naturally aligned, wholly free run inside the
// node's range; 0 if there is none. The longest run inside a word, and where the lowest of
// an order starts, come from the bits by a handful of shifts; the original's tree goes on
// to single blocks, six levels further and with 35 times the host memory.
//
// A granted run of up to 64 blocks clears its bits and sets the bit of its first block in
// a second bitmap. A longer one is marked by its node alone: the byte reads 0 while
// everything below still reads wholly free. A node that is full because of grants below it
// has two children that read 0, so the two cases cannot be confused.
//
// The roots are kept a second time side by side, so that the search over regions reads
// one cache line for 64 regions. A table of live blocks, by address, holds each block's
// region and request, so that a free neither searches the regions nor climbs from a leaf.
//
// It is address-ordered first fit: the oldest region whose root has a run
// of order k or longer, and in it the lowest run of order k, found by going left whenever
// the left half can serve. A small hole higher up does not save a large one lower down.
//
// Splitting is implicit. Granting and freeing renew the bytes on the way from the word, or
// from the node of a longer run, to the root, and stop at the first that does not change.
// Two wholly free halves make a wholly free whole, so merging is immediate and complete.
//
// Alloc reads one byte per region, both read or write one byte per level of the tree. Words
// and tree take 18 bytes of host memory per 64 blocks of a region, 18 KiB for 1 GiB in
// blocks of 16 KiB; a live block takes 16 to 21 bytes in a table.
//
// When no region serves, one more of RegionBytes is taken from the device. Regions are
// never given back before Close, empty or not.
//
// A block of order k starts at a multiple of its size in its region. Regions are asked
// for with the alignment of [regions.Align], at most 2 MiB. So any alignment up to the
// smaller of the two is honoured whatever the state, and every other is refused. It never
// changes the placement.
//
// # Invariants
//
// Of the modern mode:
//
// Invariant H1: what is not free is live: the table of live blocks tiles it.
// Invariant H2: a free block is one that the rule of splitting makes of its root.
// Invariant H3: free blocks are disjoint, and with the units granted add up to the region.
// Invariant H4: two free buddies are merged, unless some are known not to be.
// Invariant H5: the classes noted for a region, the regions for a class, and the words of a
// set, are those with a free block.
// Invariant H6: each region held has one record, and pool regions one rank each in the order
// of choice, in the bucket of what is used of them.
// Invariant H7: the lists by age hold the free blocks of their class.
// Invariant H8: free blocks of a class, free bytes, bytes in empty regions and in live direct
// ones are counted.
// Invariant H9: the counters are what the walk shows.
// Invariant H10: direct regions without a live block are kept in the order of their sizes.
// Invariant H11: a region is cut to its last whole unit.
// Invariant H12: the addresses of a region, and no others, lead to its record.
//
// Of mode "xdl":
//
// Invariant U1: the table of live blocks and the granted runs of the regions are the same set.
// Invariant U2: a block of order k starts at a multiple of BlockBytes<<k in its region.
// Invariant U3: everything below a granted or a wholly free node reads wholly free.
// Invariant U4: a node whose children are both wholly free is wholly free or granted.
// Invariant U5 (summary is the longest free run): the byte of a word is that of its longest
// free aligned run, the byte of any other node the larger of its children's unless U4 holds.
// Invariant U6: the roots kept side by side are the roots of the trees.
// Invariant U7: the regions by age and the regions by address are the same set.
// Invariant U8: the counters are what the walk shows.
// Invariant U9: in a word, first blocks of granted runs are not free.
//
// # Source and departures
//
// Knowlton, A Fast Storage Allocator, 1965; Hirschberg, A Class of Dynamic Memory Allocation
// Algorithms, 1973, for Fibonacci sizes; Shen and Peterson, A Weighted Buddy Method, 1974;
// Peterson and Norman, Buddy Systems, 1977, for the general rule. Barkley and Lee, A Lazy Buddy
// System Bounded by Two Coalescing Delays, 1989, for slack. Trimming and several roots are what
// drivers of graphics cards do. Metadata in tables off to the side is our own necessity: the
// originals keep it in the memory that they manage, which lies on the card here.
//
// Mode "xdl" is the buddy allocator of Alibaba's X-DeepLearning
// (xdl/core/framework/buddy_allocator), placement by placement. It departs where the
// original is wrong or ends the process:
//
//   - a size of zero and a size above RegionBytes are ErrInvalidRequest, where the
//     original returns null or aborts;
//   - a device refusal is ErrOutOfMemory and changes nothing;
//   - freeing what is not the start of a live block is ErrInvalidFree, where the original
//     accepts interior, repeated and stale addresses and releases somebody else's block;
//   - parameters are checked before they are used, and more than 2^30 blocks a region are
//     refused; the original divides by zero and overruns its arrays;
//   - a free finds its region in O(1), where the original searches.
package buddy
