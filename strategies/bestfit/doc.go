// Package bestfit places a block in one of the smallest free chunks that serve, and among
// those in the one at the lowest address. It leaves small remainders with the block and merges
// at once.
//
// # Data structure
//
// The chunks lie in the table of kit/tiles. The free ones are ordered by size and
// address in kit/index. Tails, the chunks at the end of their region, stand in a map of
// their own. Of a free chunk the table notes its name there.
//
// # Search
//
// Config.Looks chunks, from the smallest that serves upwards, are looked at, as long as they
// exceed it by at most a Config.Spread-th of the request. The one at the lowest address is
// taken. With one look that is strict best fit, which among chunks of one size takes the
// lowest.
//
// A tail is used only when no hole serves, however well it fits. So the memory at the end of a
// region stays whole for the request that nothing else serves, and what a region needs at
// most does not depend on how large it is.
//
// # Why not strictly the best
//
// Strict best fit takes a chunk anywhere. Preferring low addresses among chunks that hardly
// differ drains the upper end, where holes then grow together.
//
// Cutting a block to the last quantum leaves remainders that hardly anybody asks for: of 30,000
// free chunks among 100,000 blocks of the workload w1 of harness/trace/workload 4,600 had one quantum.
// Each is entered, taken out and merged all the same. So a remainder of at most a Config.Slack-th
// of the request stays with the block. A block then wastes up to that, and the free memory less.
//
// On w1 the smallest region that survives, divided by the peak of requested bytes, is (seed 42
// and, at 1e3 and 1e4 blocks, the mean of seeds 42, 1, 2, 3; time of a pair relative to the
// default, from one run):
//
//	looks  spread   slack     1e3   (mean)  time      1e4   (mean)  time      1e5  time
//	    2       8      16   1.138  (1.139)  1.00    1.089  (1.091)  1.00    1.047  1.00
//	    1       8      16   1.202  (1.192)  0.91    1.099  (1.100)  0.93    1.048  0.96
//	    3       8      16   1.174  (1.168)  1.10    1.083  (1.087)  1.08    1.050  1.04
//	    4       8      16   1.124  (1.125)  1.17    1.073  (1.082)  1.13    1.054  1.14
//	    8       8      16   1.129  (1.140)  1.35    1.073  (1.074)  1.36    1.055  1.22
//	    2       8       8   1.133  (1.138)  0.90    1.089  (1.088)  0.90    1.051  0.93
//	    2       8      32   1.122  (1.152)  1.14    1.089  (1.093)  1.11    1.054  1.07
//	    2       8      64   1.129  (1.156)  1.25    1.087  (1.093)  1.25    1.057  1.15
//	    2       8    none   1.133  (1.152)  1.34    1.085  (1.088)  1.46    1.061  1.53
//	    1       8    none   1.205  (1.200)  1.25    1.134  (1.135)  1.39    1.069  1.43
//	    8       8    none   1.106  (1.137)          1.064  (1.068)          1.054
//	   16       8    none   1.160  (1.135)          1.066  (1.073)          1.057
//	    8       4    none   1.125  (1.125)          1.069  (1.073)          1.062
//	    8      16    none   1.151  (1.175)          1.069  (1.077)          1.048
//
// What was tried besides and changed less than the seed does: the highest address among
// chunks of one size; the block at the upper end of the hole; small requests at the upper end
// of the region. Without a bound on the looks more of them help little and cost time.
//
// # Split and merge
//
// What a chunk has beyond the request, rounded up to the quantum, is split off unless it is
// slack, and becomes free, with neighbours that are live. A freed block merges with the free
// chunks before and behind it. Neither ever waits.
//
// # Cost
//
// Alloc and Free cost O(looks): a look is a comparison in one or two cache lines, and what is
// taken, entered or merged costs O(1), or amortized O(log chunks of that size) where it is the
// lowest of many. A request with an alignment above the quantum passes over chunks that are
// large enough but misplaced, which may be many.
//
// # Growth
//
// By the policy of kit/regions. By default one region holds the whole limit, 1 TiB, or
// what the device has of it. With Config.Release empty regions go back, and before a request
// is refused all of them do.
//
// # Alignment
//
// Every power of two is honoured. The smallest chunk that has room at an aligned place is
// taken, holes before tails; what lies before the place becomes free.
//
// # Invariants
//
// Of the table of chunks, see kit/tiles: Invariant K1 (chunks tile their region),
// Invariant K2 (free neighbours are merged), Invariant K3 (requested at most size),
// Invariant K4 (the index of addresses holds the live chunks), Invariant K5 (every row is a
// chunk or spare), Invariant K6 (empty bytes), Invariant K7 (counters). Besides:
//
// Invariant F1: the maps hold exactly the free chunks, under their size and address.
// Invariant F2: a free chunk is among the tails exactly if it ends its region and tails are apart.
//
// # Source and departures
//
// Knuth, The Art of Computer Programming, volume 1, section 2.5; Wilson, Johnstone, Neely and
// Boles, Dynamic Storage Allocation: A Survey and Critical Review, 1995, from where the
// preference for low addresses and for leaving the wilderness alone comes. The few looks that
// join best fit and address order are ours.
package bestfit
