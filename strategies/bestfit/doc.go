// Package bestfit places a block in one of the smallest free chunks that serve, and among
// those in the one at the lowest address. It splits down to the quantum and merges at once.
//
// # Data structure
//
// The chunks lie in the table of internal/tiles. The free ones are ordered by size and
// address in internal/sizemap. Tails, the chunks at the end of their region, stand in a map of
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
// differ drains the upper end, where holes then grow together. On the workload w1 of
// harness/workload the smallest region that survives, divided by the peak of live bytes, is
// (rows 1, 2, … looks; seed 42 and, at 1e3 and 1e4 blocks, the mean of seeds 42, 1, 2, 3):
//
//	looks  spread     1e3   (mean)      1e4   (mean)      1e5
//	    1       8   1.205  (1.200)    1.134  (1.135)    1.069
//	    2       8   1.133  (1.152)    1.084  (1.088)    1.061
//	    4       8   1.118  (1.136)    1.067  (1.076)    1.054
//	    8       8   1.106  (1.137)    1.064  (1.068)    1.054
//	   16       8   1.160  (1.135)    1.066  (1.073)    1.057
//	    8       4   1.125  (1.125)    1.069  (1.073)    1.062
//	    8      16   1.151  (1.175)    1.069  (1.077)    1.048
//
// What was tried besides and changed less than the seed does: the highest address among
// chunks of one size; the block at the upper end of the hole; small requests at the upper end
// of the region; remainders left with the block when they are small. Without a bound on
// the looks more of them help little and cost time.
//
// # Split and merge
//
// What a chunk has beyond the request, rounded up to the quantum, is split off and becomes
// free, with neighbours that are live. A freed block merges with the free chunks before and
// behind it. Neither ever waits.
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
// By the policy of internal/growth. By default one region holds the whole limit, 1 TiB, or
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
// Of the table of chunks, see internal/tiles: Invariant K1 (chunks tile their region),
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
