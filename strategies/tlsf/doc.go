// Package tlsf finds a free chunk in constant time: free chunks are in lists by size, and two
// levels of bitmaps lead to the right list.
//
// # Data structure
//
// The chunks lie in the table of kit/tiles, whose rings are the lists. A list holds the chunks of
// one class. The first 2^SecondLevel classes are single sizes, 1, 2, … quanta; above, each
// doubling of the size has 2^SecondLevel classes of equal width. A bit for each class says whether
// it has a chunk, and a bit for each word of those whether the word is zero, so two instructions
// find the next class with a chunk. Words are always full, where the paper has a word for each
// doubling; no class is open-ended.
//
// Tails, each the last chunk of its region, have a map by size (kit/index).
//
// # Search
//
// Good fit: a request is rounded up to the start of a class. The first chunk of that class, or of
// the next class with a chunk, is taken without a comparison of sizes. A chunk of the request's own
// class that would fit is skipped.
//
// With Config.Scan that many chunks of the own class are tried first, and as many of the class
// above; the lowest that fits is taken, so low addresses fill and high ones drain. A scan of 4
// makes a pair of calls 4 to 12 % slower with 1e3 to 1e6 live blocks; list "address" more than ten
// times slower with 1e5. The smallest region that survives the workload w1 of
// harness/trace/workload, over the peak of live bytes:
//
//	                                    1e3    1e4    1e5
//	scan 0                            1.227  1.186  1.111
//	scan 1                            1.215  1.161  1.088
//	scan 2                            1.182  1.122  1.070
//	scan 4                            1.143  1.108  1.062
//	scan 8                            1.189  1.115  1.059
//	scan 16                           1.153  1.116  1.057
//	scan 8, second_level 3            1.162  1.080  1.061
//	second_level 3                    1.259  1.252  1.213
//	exhaustive                        1.199  1.176  1.114
//	list fifo                         1.215  1.184  1.120
//	list address                      1.169  1.108  1.062
//
// A tail is used only when no class has a chunk, with Config.Exhaustive only when no chunk serves.
// TailHole makes it a chunk like others, as in the paper.
//
// # The bound
//
// [Config.Bound] is the size from which every free chunk must serve: the request rounded up to
// quanta, plus the cost of its alignment, rounded up to a class. The rounding adds less than a
// 2^SecondLevel-th, 3 % by default, at any size up to [tiles.MaxRequest], and nothing in the first
// classes. A separate tail, and with Config.Exhaustive every free chunk, serves every request that
// fits.
//
// # Split, merge and growth
//
// The remainder beyond the request, rounded up to the quantum, is split off. A freed block merges
// with the free chunks before and behind it at once. Every power of two is honoured as an
// alignment: the search is for the size and the cost of the alignment, and the memory before the
// aligned place becomes free. Regions follow the policy of kit/regions: by default one region holds
// the whole limit of 1 TiB, or as much as the device has. With Config.Release empty regions go
// back, and all of them before a request is refused.
//
// # Cost
//
// Alloc and Free take O(1) + O(scan), with these exceptions. With list "address" a free walks the
// list, which takes microseconds with 1e5 blocks. Exhaustive walks the lists of the own class when
// all else fails, for an alignment also those between. A tail is found in O(1), for an alignment
// above the quantum in O(misplaced tails). [tiles.View.LargestFree] and a refusal, which records
// the largest hole, walk the list of the highest class: half a millisecond with 1e5 holes of one
// class.
//
// # Invariants
//
// Of the table of chunks, see kit/tiles: Invariant K1 (chunks tile their region), Invariant K2
// (free neighbours are merged), Invariant K3 (requested at most size), Invariant K4 (the index of
// addresses holds the live chunks), Invariant K5 (every row is a chunk or spare), Invariant K6
// (empty bytes), Invariant K7 (counters). Also:
//
// Invariant L1: each free chunk that is no separate tail is exactly once in the list of its class;
// the links of a list are symmetric.
// Invariant L2: a bit is set if and only if its list, or a list of its first level, is not empty.
// Invariant L3: lists of order "address" ascend; lists of order "fifo" have a correct end.
// Invariant L4: the map holds exactly the free chunks at the end of their region, if tails are
// separate.
//
// # Source and departures
//
// Masmano, Ripoll, Crespo and Real, TLSF: a New Dynamic Memory Allocator for Real-Time Systems,
// 2004. Departures: nothing lies in the memory managed; tails come last; the own class may be
// scanned; alignment is honoured. Some public ports lose free ranges of 512 GiB and more, whose
// first level they do not have.
package tlsf
