// Package sizemap finds free chunks by size: the smallest that is large enough and, among
// equals, the one at the lowest address.
//
// It is the index of the best fits. The order is that of a search tree with keys (size,
// address), the cost that of the lists by size class of strategies which do without the order.
//
// # Data structure
//
// Three layers, each for what the one above does not tell apart.
//
// A table of classes. The class of a size is its leading one and the eight bits behind it,
// counted in units of what sizes are multiples of: like a floating-point number, so that
// classes ascend with sizes and any size has one at once. Up to 512 units a class is a single
// size. A bit for each class tells whether it has any, and a bit for each word of those whether
// that is zero: so the next class that has any is found in a few steps. A search begins with
// the bits of 64 classes from its own on, beyond which it rarely goes; where words end is
// of no matter to it, so that no branch depends on that.
//
// Groups. All chunks of one size are a group. The groups of a class, mostly one, are a list in
// the order of their sizes. A fifth turns the list into a directory of sixteen lists by the
// next four bits of the size, and so on below, so that no list has more than four groups. A
// directory is undone only when it is empty: what comes and goes at the edge costs nothing.
//
// Heaps. A group is a pairing heap by address. Its root is the lowest and counts the members,
// which is all that a search needs to know. A new chunk is compared with the root and
// becomes the first below it, or the new root. A chunk that goes and has others below it leaves
// its place to the lowest of them, found by melding them in pairs.
//
// Nodes are 32 bytes and name each other by index; whoever puts a chunk in keeps the index as
// its name, and takes it out again without a search. Nodes and directories that are not in use
// are used again, so that a map whose population is steady allocates nothing.
//
// # Why not a tree
//
// A strategy enters and takes out four chunks for a block and asks for one. In a B+ tree each
// of these is a descent that ends in moving half a leaf, about 55 ns. But what is entered is
// mostly a remainder that is never asked for, and thousands of them have the same few sizes:
// of 30,000 free chunks among 100,000 live ones of the workload w1, 4,600 have one unit and
// all together 1,700 sizes. So the order of addresses is made only where somebody
// asks for the lowest, and then no further than that.
//
// # Cost
//
// Insert, Ceil and Near (for each group it passes) cost O(1), and O(bits of a size) where
// directories are: at most 14. Remove too, but where others lie below the chunk: O(log n) for
// n chunks of the size, amortized over the calls so far (Fredman and others; Pettie). One such
// call may cost what n insertions have put off, a few nanoseconds each. First looks at all that
// it passes, All and From sort each group.
//
// A chunk takes 32 bytes. The table has four bytes for each class between the smallest and the
// largest so far, 1 KiB to a doubling: 27 KiB for chunks of 256 bytes to a TiB in units of
// 256 bytes. A directory takes 72 bytes; there is at most one for each chunk and four bits of
// its size below the leading nine, which only sizes that differ nowhere else come near to: many
// chunks around 1 GiB, a few units apart, take 50 bytes each.
//
// # Invariants
//
// Invariant M1: a group has one size, what lies below an entry has a higher address, links mirror, the root counts.
// Invariant M2: a group is in the cell of its size, at most four in one, in the order of their sizes.
// Invariant M3: a bit of a class, a word or a directory is set exactly if there is something under it.
// Invariant M4: a directory in use has something, and tells apart the four bits below those that lead to it.
// Invariant M5: every node is an entry or spare, and Len counts the entries.
//
// # Source
//
// Classes like floating-point numbers: Masmano and others, TLSF, 2004, there with lists in no
// order. Pairing heaps: Fredman, Sedgewick, Sleator and Tarjan, 1986. Directories by digits:
// Fredkin, Trie Memory, 1960. The three together are ours.
package sizemap
