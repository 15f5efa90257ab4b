// Package bestfit places a block in one of the smallest free chunks that serve, and among those in
// the one at the lowest address. Small remainders stay with the block, and freed chunks merge at
// once.
//
// # Data structure
//
// The chunks lie in the table of kit/tiles. The free ones are ordered by size and address in
// kit/index. Tails, the chunks at the end of their region, have a map of their own. The table
// records the entry of each free chunk in its map.
//
// # Search
//
// Config.Looks chunks are compared, from the smallest that serves upwards, as long as they exceed
// it by at most a Config.Spread-th of the request. The one at the lowest address is taken. One look
// is strict best fit. A tail is used only when no hole serves, so the memory at the end of a region
// stays whole for the request that nothing else serves.
//
// # Why not strictly the best
//
// Preferring low addresses among chunks of nearly the same size drains the upper end, where holes
// then merge. Cutting a block to the last quantum leaves remainders that are rarely requested: of
// 30,000 free chunks among 100,000 blocks of the workload w1 of harness/trace/workload, 4,600 had
// one quantum. So a remainder of at most a Config.Slack-th of the request stays with the block.
//
// On w1 the smallest region that survives, divided by the peak of requested bytes, is (seed 42 and,
// at 1e3 and 1e4 blocks, the mean of seeds 42, 1, 2, 3; time of a pair relative to the default,
// from one run):
//
//	looks  spread   slack     1e3   (mean)  time      1e4   (mean)  time      1e5  time
//	    2       8      16   1.138  (1.139)  1.00    1.089  (1.091)  1.00    1.047  1.00
//	    1       8      16   1.202  (1.192)  0.91    1.099  (1.100)  0.93    1.048  0.96
//	    4       8      16   1.124  (1.125)  1.17    1.073  (1.082)  1.13    1.054  1.14
//	    8       8      16   1.129  (1.140)  1.35    1.073  (1.074)  1.36    1.055  1.22
//	    2       8       8   1.133  (1.138)  0.90    1.089  (1.088)  0.90    1.051  0.93
//	    2       8      32   1.122  (1.152)  1.14    1.089  (1.093)  1.11    1.054  1.07
//	    2       8    none   1.133  (1.152)  1.34    1.085  (1.088)  1.46    1.061  1.53
//	    1       8    none   1.205  (1.200)  1.25    1.134  (1.135)  1.39    1.069  1.43
//	    8       4    none   1.125  (1.125)          1.069  (1.073)          1.062
//	    8      16    none   1.151  (1.175)          1.069  (1.077)          1.048
//
// Three variants changed less than the seed does: the highest address among chunks of one size, the
// block at the upper end of the hole, and small requests at the upper end of the region.
//
// # Split, merge and growth
//
// The remainder beyond the request, rounded up to the quantum, is split off unless it is slack. A
// freed block merges with the free chunks before and behind it. Regions follow the policy of
// kit/regions: by default one region holds the whole limit of 1 TiB, or as much as the device has.
// With Config.Release empty regions go back, and all of them before a request is refused.
//
// # Cost
//
// Alloc and Free cost O(looks); a look is a comparison in one or two cache lines. Inserting and
// removing a chunk costs O(1), or amortized O(log chunks of that size) for the lowest of many.
// Every power of two is honoured as an alignment: the smallest chunk with room at an aligned place
// is taken, holes before tails, and the memory before the place becomes free. An alignment above
// the quantum passes over misplaced chunks.
//
// # Invariants
//
// Of the table of chunks, see kit/tiles: Invariant K1 (chunks tile their region), Invariant K2
// (free neighbours are merged), Invariant K3 (requested at most size), Invariant K4 (the index of
// addresses holds the live chunks), Invariant K5 (every row is a chunk or spare), Invariant K6
// (empty bytes), Invariant K7 (counters). Also:
//
// Invariant F1: the maps hold exactly the free chunks, under their size and address.
// Invariant F2: a free chunk is among the tails exactly if it ends its region and tails are apart.
// Invariant F3: while free chunks are tracked, the list by address holds exactly these.
//
// # Source and departures
//
// Knuth, The Art of Computer Programming, volume 1, section 2.5; Wilson, Johnstone, Neely and
// Boles, Dynamic Storage Allocation: A Survey and Critical Review, 1995, for the preference for low
// addresses and for leaving the wilderness alone. The few looks that join best fit and address
// order are ours.
package bestfit
