// Package blocks is the engine of the buddy strategies: regions, the free blocks in them, and how
// they split and merge. Package buddy adds a table of live blocks, slabbuddy that and slabs.
//
// # Data structure
//
// A region is cut into roots: the largest block that fits, the largest that fits the rest, and so
// on down to one unit. For each region and class there is a set of free blocks, numbered by start
// in steps of the alignment that blocks of the class have. Up to 4096 numbers a set is words of one
// store with one summary word above them; beyond that it is a bit set of kit/index. With powers of
// two the twelve largest classes of a region are one set, numbered as a binary tree: buddy and
// parent are found by a bit and a shift, the six largest classes share a word, and the nine largest
// a cache line.
//
// For each class there is the set of the regions that have a free block of it, in the order of
// choice, and above that one bit for each class. Granted blocks leave no mark. An atlas leads from
// an address to its region: a label for each 32 MiB held, or sixteen where several regions share
// these.
//
// Units are numbered up to 2^31 for powers of two, 2^26 with Fibonacci sizes or placement "newest",
// and 2^28 otherwise; a larger region is used up to there.
//
// # Search
//
// Placement "smallest" takes the smallest class that serves and has a free block anywhere, there
// the first region in the order of choice, and in it the lowest block. "newest" takes the block
// freed last instead, from lists of 8 bytes a unit. "leftmost" takes the first region with any
// block that serves, and the lowest one there; "top-down" the highest, as the hint for the high end
// does under every placement. Regions are chosen by age, by address, or by how full they are in
// sixteen steps.
//
// # Split and merge
//
// A larger block is split towards the smaller part that still serves, of equal ones the left; for
// the high end towards the right part whenever it serves. With trim, the tail beyond the request
// goes back at once in the largest blocks that it consists of. A block is found from its root by
// descending: only one way leads to a unit, and only its right turns take a step.
//
// Coalescing "lazy" leaves a freed block unmerged while its class has fewer than Slack free ones,
// "failure" always. Everything is merged before a region is reserved.
//
// # Cost
//
// A grant reads one word of classes and two sets, and changes one set for each split; a free
// changes one for each merge. Neither depends on the number of regions. Only a new region that
// precedes others in the order of choice renumbers them. A region takes 128 bytes and up to 2 bits
// a block with powers of two, 3.5 with other families, and one a class with Fibonacci sizes; 32 MiB
// held take 4 to 68 bytes.
//
// # Invariants
//
// Invariant H2: a free block results from splitting its root by the rule of the family.
// Invariant H3: free blocks are disjoint, and with the units granted add up to the region.
// Invariant H4: free buddies are merged, unless some merges are deferred.
// Invariant H5: the summaries (classes of a region, regions of a class, words of a set) match the
// free blocks.
// Invariant H6: each region held has one record, and pool regions one rank each in the order
// of choice, in the bucket of its used bytes.
// Invariant H7: the lists by age hold the free blocks of their class.
// Invariant H8: the counts of free blocks per class, free bytes, empty bytes and live direct bytes
// are exact.
// Invariant H10: kept direct regions are ordered by size.
// Invariant H11: a region is used up to its last whole unit.
// Invariant H12: the atlas leads from the addresses of a region, and no others, to its record.
package blocks
