// Package slab grants small blocks from large regions that it carves up: Bonwick's slabs of
// equal slots for each size class, with magazines, over slices of regions.
//
// # Data structure
//
// A request is rounded up to a size class: one of a family ([Family]), or one of a list,
// for instance of the classes of least waste for a trace ([Learn]). Each class has slabs,
// pieces of equal size cut into equal slots. A slab is a record of 64 bytes beside the
// memory: its address, its free slots as a bitmap, with a second level if there are more than 64,
// and links. In each segment, the slabs of a class that are partly used lie in eight lists by
// how full they are, those without a used slot in one of their own, and those without a
// free one in none. With the selection of the lowest address a heap stands in for the lists.
//
// There is no table of live blocks. A freed address leads to its slab by package atlas, a trie of
// areas; the offset in the slab to the slot, by a product in place of a division that also
// tells whether a slot starts there; and the bitmap says whether it is in use. What was asked for
// is kept as slack, the bytes that the slot has beyond it: two bytes for each slot, sixteen in the
// record, and in further ones behind it if there are more. A block with a stream, a label or a larger slack has a note besides, in a
// hash table that is empty otherwise, and a slot in a magazine has a slack of its own.
//
// All that is a cells engine, the engine, which does not know where slabs come from: a [Parent] gives
// it slabs. Here the parent cuts regions, sized by package growth, into slices. In slabbuddy a
// buddy system is the parent.
//
// A slab has SlabSlots slots at least: slabs of small classes have SlabBytes, those of larger
// ones 4, 16, ... times as many. Classes whose slabs are of one size make a grade; a grade
// has regions of its own, and any of their slices can become a slab of any of its classes,
// in any segment. So a few small blocks take little, and large ones still share a slab.
//
// In front of the slabs of each class stand magazines, if they are asked for: stacks of
// free slots, two for each segment and class, and a depot of full ones for each class.
// Slots in magazines are chunks in state Cached.
//
// # Search
//
// A request is served by the first of: the loaded magazine, the one before it, a full one
// of the depot; a partly used slab of its segment, by the selection, and in it the lowest
// free slot; an empty slab of its class and segment; a slice that no slab has; if segments
// steal, a partly used or empty slab of another one; a new region. A slice that no
// slab has is attached before another segment's slots are used, which keeps a segment's blocks to
// itself. (Eight segments in turn, 1000 live blocks of lognormal sizes: 5.9 times peak live, 7.1
// without stealing, 2.1 with one segment.)
//
// If the device refuses, magazines are emptied into their slabs, slabs without a used slot
// become slices, and regions without a slab go back to the device, which is asked once
// more; the search is repeated after each step. A request above the largest class gets a
// region of its own, of whole quanta, which goes back when it is freed.
//
// # Split and merge
//
// Slots are neither split nor merged. A slab without a used slot is whole again: beyond
// EmptySlabs for its class and segment it goes back to the parent at once. A region without
// a slab goes back to the device if Release is set, beyond KeepBytes. What a class leaves
// unused behind its last slot is at most one part in Waste of the slab.
//
// A depot gives back, every 4096 calls, as many full magazines as it had at the least
// since the last time: what it did without, which is the working set rule of Bonwick and
// Adams with calls for a clock.
//
// # Cost
//
// A call costs O(1) a call, O(segments) if a segment steals, and O(log slabs) with
// the lowest address; a slab takes 76 bytes for each sixteen slots begun, rounded up to a power of two
// of them, and 4 to 64 in the atlas, a slice 4 bytes. Nothing is allocated on the heap once as much has been held as
// ever will be.
//
// # Alignment
//
// A request goes to the smallest class whose slots all have its alignment, or else gets a region
// of its own. Every alignment up to 2 MiB, or the quantum if that is larger, is honoured, and every other is refused.
//
// # Invariants
//
// Invariant C1: a slot is free or in use, and a slab counts its free slots.
// Invariant C2: a slab with a free slot is once in the list of its level, or where its address
// puts it in the heap, of its class and segment; no other is in any.
// Invariant C3: the lists that are not empty are known.
// Invariant C4: the bytes in use, usable and in slabs without a used slot are sums over the slabs.
// Invariant C5: a class keeps in a segment at most EmptySlabs slabs without a used slot.
// Invariant C6: a depot has at most Depot magazines, each full, and a magazine at most
// MagazineRounds slots.
// Invariant C7: a slot in use is a live block or in one magazine, of its class, and of its
// segment unless magazines pass from one to another through a depot; its slack tells which.
// Invariant C8: each slice of a region is one slab's or nobody's, and what is nobody's is known,
// as is from where on nothing ever was a slab's, which is so in one region of a grade at most.
// Invariant C9: a region is cut into slices, one live block, or stale: the device refused to take
// it back, and it is slack until it goes back.
// Invariant C10: the counters are what the walk shows.
// Invariant C11: the atlas leads from every byte of a slab to it, and to nothing that is none.
//
// # Sources and departures
//
// The package follows Bonwick (The slab allocator: an object-caching kernel memory
// allocator, USENIX 1994), with the records off the slab, which he has for large objects
// and which is the only form possible where memory is never touched; Bonwick and Adams
// (Magazines and vmem, USENIX 2001) for the magazines; and Linux's SLUB for preferring
// partial slabs to empty ones and full ones to sparse ones. It departs from them:
//
//   - slabs are not coloured, for a GPU's memory has no cache sets worth spreading over;
//   - magazines belong to segments, not to processors, and their size is fixed;
//   - empty magazines, which are a little host memory, are one store for all classes;
//   - empty slabs go back at once or stay, whatever their age.
package slab
