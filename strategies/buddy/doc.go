// Package buddy places blocks that split in two and merge with the part they were split from.
//
// A request gets the smallest block with room for it. If no such block is free, a larger one is
// split, repeatedly if necessary; the parts that are not needed stay free. A freed block merges
// with its buddy, the other part of the block that both were split from, as long as that is free.
// The address of a block determines its buddy, so merging takes no search. The price is rounding up
// to the sizes that exist: with powers of two up to half of a block, and a quarter on average if
// all sizes are equally likely.
//
// # Sizes
//
// A family of sizes is a table of classes in units of Config.BlockBytes. Class i splits into class
// i-1 on the left and the rest, which is a class too, on the right.
//
//	binary     1 2 4 8 16 …          2^k = 2^(k-1) + 2^(k-1)
//	weighted   1 2 3 4 6 8 12 …      4·2^k = 3·2^k + 2^k,  3·2^k = 2·2^k + 2^k
//	fibonacci  1 2 3 5 8 13 …        F(n) = F(n-1) + F(n-2)
//	k4         1 … 8 10 12 14 16 …   m·2^j = (m-1)·2^j + 2^j, and so k8: 1 … 16 18 20 …
//
// More sizes waste less inside blocks and more between them: small right parts remain that no
// request needs.
//
// # Data structure, search, split and merge
//
// Package strategies/internal/blocks is the engine and describes them. This package adds a hash
// table of the live blocks by address, 11 to 15 bytes each, with the request of each.
//
// # Growth
//
// Regions are sized by a policy of kit/regions. A request above DirectBytes gets a region of its
// size, rounded up to units. When it is freed the region is kept for requests of at least eight
// ninths of it: up to DirectCacheBytes or, by default, while kept and used ones together are at
// most a quarter above the most ever in use. The oldest kept region is returned first. When the
// device or the limit refuses, every region without a live block is returned and the device is
// asked again. Then a request for less than its block tries a region of its own, and one above
// DirectBytes the pool.
//
// With the defaults the seven recorded traces need 1.02 times the lower bound of memory, where bfc
// needs 1.07 and X-DeepLearning's buddy 1.2 to 1.8; with one region for everything 1.28, with
// DirectBytes of 1 MiB 1.01 at a fifth more device calls, and at 16 MiB 1.09.
//
// # Alignment
//
// Blocks start at multiples of BlockBytes from regions aligned to 2 MiB. A larger alignment is
// served out of a larger block, whose rest goes back. Every alignment up to 2 MiB is honoured.
//
// # Invariants
//
// Invariant H1: the live blocks in the table tile all memory that is not free.
// Invariant H9: the counters match the walk.
//
// # Source and departures
//
// Knowlton, A Fast Storage Allocator, 1965; Hirschberg, A Class of Dynamic Memory Allocation
// Algorithms, 1973; Shen and Peterson, A Weighted Buddy Method, 1974; Peterson and Norman, Buddy
// Systems, 1977, for the general rule; Barkley and Lee, A Lazy Buddy System Bounded by Two
// Coalescing Delays, 1989. Trimming and several roots are as in drivers of graphics cards. The
// originals keep metadata in the memory that they manage; here it lies in tables on the host.
package buddy
