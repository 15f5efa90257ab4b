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
// X-DeepLearning's 1.2 to 1.8. In one region for everything it is 1.28, and 1.21 with trim. With
// DirectBytes of 1 MiB it is 1.01, at a fifth more device calls; at 16 MiB 1.09.
//
// # Alignment
//
// Blocks start at multiples of BlockBytes from regions aligned to 2 MiB. An alignment beyond
// what blocks of the class have is served out of a larger block: of one as large as the
// alignment with halves, else of one with room to move the start up; the rest goes back. So
// any up to 2 MiB is honoured, and every other refused.
//
// # Invariants
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
// # Source and departures
//
// Knowlton, A Fast Storage Allocator, 1965; Hirschberg, A Class of Dynamic Memory Allocation
// Algorithms, 1973, for Fibonacci sizes; Shen and Peterson, A Weighted Buddy Method, 1974;
// Peterson and Norman, Buddy Systems, 1977, for the general rule. Barkley and Lee, A Lazy Buddy
// System Bounded by Two Coalescing Delays, 1989, for slack. Trimming and several roots are what
// drivers of graphics cards do. Metadata in tables off to the side is our own necessity: the
// originals keep it in the memory that they manage, which lies on the card here.
package buddy
