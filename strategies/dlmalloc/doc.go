// Package dlmalloc places blocks as Doug Lea's malloc does: exact lists for small sizes, tries for
// large ones, a designated victim for small requests in series, and the end of the memory last.
// TensorFlow's BFC calls itself a simple version of it.
//
// # Data structure
//
// Sizes are in quanta. A free chunk is in one of four places:
//
//   - Small bins: bin i of 31 is a list of the chunks of i quanta. The chunk freed last comes
//     first.
//   - Tree bins: two for each doubling from 32 quanta on; the last has all larger chunks. A tree
//     bin is a bitwise trie: each chunk in it decides by the next bit of a size between its two
//     children. Chunks of one size are a ring, of which the oldest is in the trie and is taken
//     first.
//   - dv, the designated victim: at most one chunk, normally the remainder of the last small
//     request.
//   - top: the free end of the active region, the last one from [tiles.Core.Grow].
//
// A word has a bit for each of the 63 bins. The chunks lie in the table of kit/tiles, whose rings
// are the lists; a node of the trie takes twelve bytes beside them.
//
// # Search
//
// A small request, of less than 32 quanta, takes the first of these that exists:
//
//  1. a chunk of its own bin, or of a bin so little above that the remainder would be below
//     Config.MinChunk;
//  2. dv, if it is large enough;
//  3. a chunk of the next small bin that is not empty, or the smallest chunk of the first tree that
//     is not: its remainder is the new dv, and the old one goes to its bin;
//  4. top;
//  5. a new region.
//
// A large request takes the smallest chunk of the trees that is large enough, the oldest of equals,
// unless the remainder of dv would be as small; then dv, top, a region of its own if it has
// Config.DirectBytes, or a new region.
//
// An alignment above the quantum adds its cost to the size that is searched for.
//
// # Split, merge and growth
//
// A remainder of MinChunk quanta or more is split off. The remainder of dv stays dv, of top top, of
// a large request goes to its bin. A freed block merges with the free chunks before and behind it
// at once. If one of these was top the result is top, else if one was dv it is dv, else it goes to
// its bin.
//
// Regions follow the policy of kit/regions; they are never joined. By default one region holds the
// whole limit. A new region is active, and the top of the last one goes to its bin. A block with a
// region of its own returns it when freed. A trim returns the regions without a live block, and
// with it a top that fills its region.
//
// # Cost
//
// Alloc and Free take O(bits of a size), at most 64 steps in a trie, and a lookup of O(log regions)
// when a region becomes empty or ceases to be. At 1e3 live blocks of the workload w1 a pair of
// calls takes two to three times the time of tlsf.
//
// # Invariants
//
// Of the table of chunks, see kit/tiles: Invariant K1 to Invariant K7. Also:
//
// Invariant E1: each free chunk is exactly once in its bin, dv or top.
// Invariant E2: the chunks of a bin have a size of the bin; lists are symmetric.
// Invariant E3: a bit is set if and only if its bin is not empty.
// Invariant E4: all chunks below a child in a trie agree with it in the bits that lead there;
// parents and children name each other.
// Invariant E5: the chunks of a ring have one size, and only its first is in the trie.
// Invariant E6: a free chunk is top if and only if it ends the active region.
//
// # Source and departures
//
// dlmalloc 2.8.6 of 2012 by Doug Lea. Departures: all records are on the host, so a block has no
// header, a chunk of one quantum is possible, and top may be used up. The quantum is 256 bytes, not
// 8, so small requests are those below 8 KiB. A remainder behind an aligned block is treated like
// any other. Regions of a device neither grow nor shrink: the original extends top and returns its
// end. It searches for empty segments after every 4095th free of a large chunk, here Config.Release
// returns a region as soon as it is empty.
package dlmalloc
