// Package tlsf finds a free chunk in constant time: free chunks stand in lists by size, and
// two words of bits lead to the right one.
//
// # Data structure
//
// The chunks lie in the table of kit/tiles, which has the rings that the lists are. A list
// holds the chunks of one class. The first 2^SecondLevel classes are single sizes, 1, 2, …
// quanta; from there on each doubling of the size is cut into 2^SecondLevel classes of equal
// width. A bit for each class says whether it has a chunk, and a bit for each word of those
// whether it is zero: the two levels. So the next class that has a chunk is found with two
// instructions. Where the paper has a word for each doubling, words here are always full.
// Sizes have 64 bits, and no class is open-ended.
//
// The tails, each the last chunk of its region, are apart, in a map by size (kit/index) of at
// most one entry for each region.
//
// # Search
//
// Good fit: a request is rounded up to the start of a class, and the first chunk of that class,
// or of the next one that has any, is taken. Every chunk there is large enough, so none is
// looked at. That may pass over a chunk of the request's own class which would have
// served: hence the bound below.
//
// With Config.Scan so many chunks of the own class are looked at before. Of those that serve
// the lowest is taken, and of the class above too the lowest among as many. Low addresses
// then fill, and high ones drain. A scan of 4 makes a pair of calls 4 to 12 % dearer with 1e3
// to 1e6 blocks live; list "address" makes it more than ten times dearer with 1e5. The
// smallest region that survives the workload w1 of harness/trace/workload, over the peak of live
// bytes:
//
//	                                    1e3    1e4    1e5
//	scan 0                            1.227  1.186  1.111
//	scan 1                            1.215  1.161  1.088
//	scan 2                            1.182  1.122  1.070
//	scan 4                            1.143  1.108  1.062
//	scan 8                            1.189  1.115  1.059
//	scan 16                           1.153  1.116  1.057
//	scan 8, second_level 3            1.162  1.080  1.061
//	scan 32, second_level 3           1.144  1.081  1.055
//	second_level 3                    1.259  1.252  1.213
//	exhaustive                        1.199  1.176  1.114
//	list fifo                         1.215  1.184  1.120
//	list address                      1.169  1.108  1.062
//
// A tail is used only when no class has a chunk, with Config.Exhaustive only when no
// chunk at all serves. TailHole makes it a chunk like others, as in the paper.
//
// # The bound
//
// [Config.Bound] is the size from which on a free chunk must serve: the request rounded up to
// quanta, with what its alignment may cost, rounded up to a class. The rounding adds less than
// a 2^SecondLevel-th, 3 % by default, at any size up to [tiles.MaxRequest]; in the first
// classes it adds nothing. A tail that is apart serves whatever fits into it. With
// Config.Exhaustive every free chunk serves whatever fits into it.
//
// # Split and merge
//
// What a chunk has beyond the request, rounded up to the quantum, is split off. A freed block
// merges with the free chunks before and behind it at once.
//
// # Cost
//
// Alloc and Free take O(1) + O(scan). Not so where something else was asked for: with list
// "address" a free walks the list, which with 1e5 blocks takes microseconds; Exhaustive
// walks the lists of the own class when all else fails, for an alignment also those between.
// A tail is found in O(1), for an alignment above the quantum in O(tails that are misplaced).
// [tiles.View.LargestFree] walks the list of the highest class, and so does a refusal, which
// notes the largest hole: with 1e5 holes of one class that takes half a millisecond.
//
// # Growth
//
// By the policy of kit/regions. By default one region holds the whole limit, 1 TiB, or
// what the device has of it. With Config.Release empty regions go back, and before a request
// is refused all of them do.
//
// # Alignment
//
// Every power of two is honoured: the search is for the size and what the alignment may cost,
// and what lies before the aligned place becomes free.
//
// # Invariants
//
// Of the table of chunks, see kit/tiles: Invariant K1 (chunks tile their region),
// Invariant K2 (free neighbours are merged), Invariant K3 (requested at most size),
// Invariant K4 (the index of addresses holds the live chunks), Invariant K5 (every row is a
// chunk or spare), Invariant K6 (empty bytes), Invariant K7 (counters). Besides:
//
// Invariant L1: each free chunk that is not apart stands in the list of its class, once; the
// links of a list mirror each other.
// Invariant L2: a bit is set exactly if its list, or a list of its first level, is not empty.
// Invariant L3: lists of order "address" ascend; those of order "fifo" know their end.
// Invariant L4: the map holds exactly the free chunks that end their region, if tails are apart.
//
// # Source and departures
//
// Masmano, Ripoll, Crespo and Real, TLSF: a New Dynamic Memory Allocator for Real-Time
// Systems, 2004. Departures: nothing lies in the memory managed; tails come last; the own
// class may be scanned; alignment is honoured. Some public ports lose free ranges of 512 GiB
// and more, whose first level they do not have.
package tlsf
