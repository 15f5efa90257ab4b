// Package slab grants small blocks from large regions that it carves up: Bonwick's slabs of
// equal slots for each size class, with magazines, over slices of regions.
//
// # Data structure
//
// A request is rounded up to a size class: one of a family, or one of a list, such as the classes
// of least waste for a trace ([Learn]). Each class has slabs, pieces of memory of equal size cut
// into equal slots. A slab is a record of 64 bytes on the host: its address, a bitmap of its free
// slots, in two levels above 64, and links. In each segment the partly used slabs of a class are in
// eight lists by how full they are, and the empty ones in one list. With selection "lowest" a heap
// replaces the lists.
//
// There is no table of live blocks. An atlas leads from an address to its slab, a product in place
// of a division to its slot, and the bitmap shows whether that is used. The request is kept as
// slack, the bytes that the slot has beyond it, in two bytes a slot. A block with a stream, a tag
// or a larger slack has an entry in a hash table.
//
// This is the engine of strategies/internal/cells. Its parent here cuts regions, sized by a policy
// of kit/regions, into slices. A slab has at least SlabSlots slots: small classes have slabs of
// SlabBytes, larger ones of 4, 16, ... times as much. Classes with slabs of the same size form a
// grade. A grade has regions of its own. Each slice of them can become a slab of any class of the
// grade in any segment.
//
// Magazines are stacks of free slots in front of the slabs: two for each segment and class, and a
// depot of full ones for each class. Their slots are chunks in state Cached.
//
// # Search
//
// A request is served by the first of: the loaded magazine, the one before it, a full one of the
// depot; the lowest free slot of a partly used slab of its segment, chosen by the selection; an
// empty slab; a free slice; if segments steal, a slab of another segment; a new region. Free slices
// come before other segments, which keeps the blocks of a segment apart. (Eight segments in turn,
// 1000 live blocks of lognormal sizes: 5.9 times peak live, 7.1 without stealing, 2.1 with one
// segment.)
//
// If the device refuses, magazines are emptied, empty slabs become slices, and regions without a
// slab and kept ones are released, with another attempt after each.
//
// A request above the largest class gets a region of its own, which is released when it is freed.
// With LargeWaste the region is kept instead, and the smallest kept region serves that leaves at
// most one part in LargeWaste unused. A new region is reserved only if none does. Before that, and
// before each other reservation, kept regions are released until the strategy holds no more than it
// ever had in the others at once: each time the smallest that is enough, else the largest. (The
// oldest first takes 29,637 device calls on the recorded traces where this takes 31,615, but 5 to
// 10 % more time on W1, and a list by age.) A kept region is granted whole.
//
// # Split and merge
//
// Slots are neither split nor merged. A slab without a used slot becomes a slice again at once if
// its class and segment keep EmptySlabs already. A region without a slab is released if Release is
// set, beyond KeepBytes. A slab wastes at most one part in Waste behind its last slot.
//
// Every 4096 calls a depot empties as many magazines as it had at least since the last time: the
// working set rule of Bonwick and Adams, with calls as the clock.
//
// # Cost
//
// A call costs O(1), O(segments) if a segment steals, and O(log slabs) with the lowest address. A
// slab takes 76 bytes for each sixteen slots begun, rounded up to a power of two of them, and 4 to
// 64 in the atlas, a slice 4 bytes. Nothing is allocated on the heap once warm.
//
// # Alignment
//
// A request goes to the smallest class whose slots all have its alignment, or else gets a region of
// its own. Alignments up to 2 MiB, or the quantum if that is larger, are honoured.
//
// # Invariants
//
// Invariant C1: a slot is free or in use, and a slab counts its free slots.
// Invariant C2: a slab with a free slot is exactly once in the list of its level, or in the heap,
// of its class and segment; no other slab is.
// Invariant C3: the set of nonempty lists is exact.
// Invariant C4: the counts of used, usable and empty bytes are sums over the slabs.
// Invariant C5: a class keeps at most EmptySlabs empty slabs in a segment.
// Invariant C6: a depot has at most Depot magazines, each full, and a magazine at most
// MagazineRounds slots.
// Invariant C7: a used slot is a live block or in one magazine of its class (and of its segment,
// unless depots pass magazines between segments); its slack shows which.
// Invariant C8: a slice belongs to at most one slab. Free slices are in the free set; slices at or
// above `fresh` have never been used, in at most one region of a grade.
// Invariant C9: a region is cut into slices, one live block, kept, or stale: the device refused to
// take it back, and it is slack until it goes back.
// Invariant C10: the counters match the walk.
// Invariant C11: the atlas leads from every byte of a slab to that slab, and from no other byte.
// Invariant C12: kept regions have no block, are in a map by size, and their bytes are counted.
// Invariant C13: while a region is kept, no more is held than the other regions had at once, unless
// the device refused to take one back.
//
// # Sources and departures
//
// The package follows Bonwick (The slab allocator: an object-caching kernel memory
// allocator, USENIX 1994), with the records off the slab, which he has for large objects
// and which is the only form possible where memory is never touched; Bonwick and Adams
// (Magazines and vmem, USENIX 2001) for the magazines; and Linux's SLUB for preferring
// partial slabs to empty ones and full ones to sparse ones. It departs from them:
//
//   - slabs are not coloured, because spreading blocks over cache sets does not pay on a GPU;
//   - magazines belong to segments, not to processors, and their size is fixed;
//   - empty magazines, which are a little host memory, are one store for all classes;
//   - empty slabs are released at once or kept, regardless of age.
package slab
