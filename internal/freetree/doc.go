// Package freetree keeps the free chunks of an allocator in the order of best fit.
//
// It is an ordered set of keys (size, address), each with a 32-bit handle. The question
// that an allocator asks is [Tree.Ceil]: the smallest chunk of at least n bytes and, among
// equals, the one at the lowest address. With the keys in order that is one descent,
// however many chunks are too small.
//
// # Data structure
//
// A B+ tree. All entries lie in leaves; an inner node holds, for each child, a separator:
// a key that is above everything left of the child and not above anything in it. The
// separator of the first child is never looked at. Leaves form a doubly linked list, so
// that iteration needs no path and the largest chunk is the last entry of the last leaf.
//
// Nodes hold 32 keys: sizes, addresses and handles in arrays of their own, so that a search
// reads the four cache lines of the sizes and looks at addresses only where sizes tie. It
// counts instead of branching (see search), which took a third off an insertion and a
// deletion among 1e3 to 1e5 entries, compared with a binary search. Wider nodes make a lower
// tree, but each insertion and deletion moves half a node.
//
// Nodes live in two slices and name each other by index. The garbage collector has nothing
// to follow, a node emptied by a merge goes to a list of spare ones, and a tree whose
// population is steady allocates nothing.
//
// # Balance
//
// A full node splits in the middle. A node that falls below a quarter looks at one sibling:
// if both fit into seven eighths of a node they become one, otherwise they share evenly.
// The gap between these two bounds is what keeps a chunk that comes and goes at the edge
// from splitting and merging nodes each time: a node fresh from a merge, a split or a
// sharing is at least an eighth of a node away from the next one.
//
// # Cost
//
// Insert, Delete, Ceil and TakeCeil descend once: O(log n) with base 16 to 32. Max, Len and
// Bytes are O(1). An entry takes 20 bytes; nodes are at least a quarter and typically
// two thirds full, so count on 30 bytes per free chunk.
//
// # Invariants
//
// Invariant T1: entries are strictly ascending by (size, address) along the leaf list.
// Invariant T2: every key below a child is at least its separator and less than the next one's.
// Invariant T3: every node but the root is at least a quarter full; an inner root has two children.
// Invariant T4: Len is the number of entries, and first and last are the ends of the leaf list.
// Invariant T5: unused slots of a node hold the largest size there is.
//
// # Source
//
// Bayer and McCreight, Organization and Maintenance of Large Ordered Indexes, 1972; Comer,
// The Ubiquitous B-Tree, 1979. TensorFlow's BFC asks the same question of 21 red-black
// trees, later B-trees, one per bin; as bins never overlap in size, one tree over all of
// them gives the same answers.
package freetree
