// Package pgmo places the blocks of an iteration by a plan that was computed from a sample run, in
// the manner of PGMO: profile-guided memory optimization. Without a sample run every block goes to
// a caching fallback.
//
// # Plan
//
// The profile is the forecast of [power.Planner]. Iterations begin at marks whose text ends in a
// digit, such as "iter 3", and at marks without a text; the paper calls them propagations. The
// sample is the second iteration, or the first if there is only one, or the whole profile without
// marks. Blocks that are freed within the sample are hot. The others outlive the iteration, so they
// are requested as in an interrupted section of the paper: they have no place.
//
// The hot blocks are placed by a best-fit heuristic for dynamic storage allocation. An offset
// line is a range of time with the height up to which it is used; at first one line spans all time
// at height 0. The lowest line is taken, the earliest of equals. Of the unplaced blocks whose life
// is within its time, the one that lives longest is put on it, the largest of equals; the line is
// split, and the part of the block rises by its size. If there is no such block, the line is lifted
// to its lower neighbor and joined with it.
//
// # Runtime
//
// One region, the arena, has the height of the plan. A counter of the requests of an iteration, λ
// in the paper, selects the place. It returns to the start at each mark that begins an iteration,
// so a deviation lasts until then. A request gets its place if it is not larger than planned. Every
// other request goes to the fallback, as do all requests before the first iteration.
//
// # Reoptimization
//
// A request that is larger than planned raises its planned size. At the next iteration the plan is
// computed again with the larger sizes, and a new arena replaces the old one as soon as no block
// lies in it.
//
// # Cost
//
// Alloc and Free cost O(log free chunks). A plan costs at most 2^26 steps; a step is one block
// compared with a line. A sample that needs more is not planned.
//
// # Invariants
//
// Of the table of chunks, see kit/tiles: Invariant K1 (chunks tile their region), Invariant K2
// (free neighbours are merged), Invariant K3 (requested at most size), Invariant K4 (the index of
// addresses holds the live chunks), Invariant K5 (every row is a chunk or spare), Invariant K6
// (empty bytes), Invariant K7 (counters). Of arena and fallback, see strategies/internal/planned:
// Invariant Y1 (the maps hold the free chunks), Invariant Y2 (the live blocks of the arena are
// counted).
//
// # Source and departures
//
// Sekiyama, Imamichi, Imai and Raymond, Profile-guided memory optimization for deep neural
// networks, arXiv 1804.10001. Code was not published. Only the abstract and the introduction were
// at hand: the heuristic is best fit on offset lines as the literature on packing knows it, and is
// yet to be compared with section 3. The known differences:
//
//   - The paper does not check whether a planned place is free. Here a place that is in use goes to
//     no one else, and the request goes to the fallback.
//   - The program of the paper states which sections are interrupted. Here the profile decides.
//   - The paper plans requests beyond the profile after the iteration. Here they go to the
//     fallback, because their lives are not known.
//   - The fallback of the paper is the pool of Chainer. Here it is a best fit over regions that are
//     kept; it knows no streams.
//   - The paper fails if the arena does not fit the device. Here every block then goes to the
//     fallback; the next iteration tries again.
package pgmo
