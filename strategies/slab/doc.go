// Package slab grants small blocks from large regions that it carves up. It has three
// modes, which share the word and little else:
//
//   - [Caches], the modern one, without a mode's name: Bonwick's slabs of equal slots for
//     each size class, with magazines, over slices of regions;
//   - [Runs], mode "xdl": runs of 1 to 4 units inside chunks of 64 units, spread over
//     segments that take turns;
//   - [Lists], mode "blaze": one free list per power of two, filled by cutting regions
//     from the bottom up.
//
// # The modern mode: data structure
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
// All that is [Cells], the engine, which does not know where slabs come from: a [Parent] gives
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
// # The modern mode: search
//
// A request is served by the first of: the loaded magazine, the one before it, a full one
// of the depot; a partly used slab of its segment, by the selection, and in it the lowest
// free slot; an empty slab of its class and segment; a slice that no slab has; if segments
// steal, a partly used or empty slab of another one; a new region. That a slice is taken
// before another segment's slots is what keeps stealing from making things worse: a segment
// that steals first fills the slabs of the others, asks for a region when the last of them
// is full, and leaves slices behind that nobody has attached. Here slices belong to no
// segment until they are attached, so that stealing early costs no region either; it keeps
// fewer slabs partly used, and a segment's blocks less to themselves. (Eight segments in
// turn, 1000 live blocks of lognormal sizes: 2.2 times peak live, 5.9 if slices come first,
// 7.1 without stealing, 2.1 with one segment.)
//
// If the device refuses, magazines are emptied into their slabs, slabs without a used slot
// become slices, and regions without a slab go back to the device, which is asked once
// more; the search is repeated after each step. A request above the largest class gets a
// region of its own, of whole quanta, which goes back when it is freed.
//
// # The modern mode: split and merge
//
// Slots are neither split nor merged. A slab without a used slot is whole again: beyond
// EmptySlabs for its class and segment it goes back to the parent at once. A region without
// a slab goes back to the device if Release is set, beyond KeepBytes. What a class leaves
// unused behind its last slot is at most one part in Waste of the slab.
//
// A depot gives back, every Interval calls, as many full magazines as it had at the least
// since the last time: what it did without, which is the working set rule of Bonwick and
// Adams with calls for a clock.
//
// # Mode "xdl": data structure
//
// A region of RegionBytes is cut into Segments slices of equal size, slice g belonging to
// segment g of every region. A slice is a row of chunks of 64 units of UnitBytes. A chunk
// has two words: which units are free, and at which a block starts. Its class is the
// length of its longest free run, 4 standing for all from four up. Each segment keeps the
// chunks of the slices that it has attached in five doubly linked circles by class, linked
// by numbers, in which the chunk that was touched last is in front. A table of live blocks,
// by address, holds each block's chunk and unit.
//
// # Mode "xdl": search
//
// A request of n units goes to the segment whose turn it is; every request that is not
// refused as invalid passes the turn on, granted or not. The segment takes the front chunk
// of its list n, or else of the next one up, and in it the lowest place where n units are
// free. If all are empty it attaches its slice of the oldest region it has none of, and
// only if there is no such region takes a new one from the device; other segments attach
// their slices of that when they run out themselves. A slice's chunks join list 4 with the
// lowest in front.
//
// # Mode "xdl": split and merge
//
// Nothing is split: a block is a run of bits. A freed block's bits are set, and with that
// it is one run with what is free beside it. A block's length is not stored: it ends where
// the next one starts, at the next free unit, or with the chunk. Runs do not cross chunks.
// Granting and freeing both move the chunk to the front of its class, also if that is the
// class it was in.
//
// A segment never takes from another one. Long-lived requests at a stride that shares a
// factor with the number of segments pile up in a few of them, and then hold up to
// Segments times the memory they need. That is the original's behaviour (defect S-4 of
// its analysis) and kept; one segment avoids it.
//
// # Mode "blaze"
//
// A request is rounded up to a power of two, its class. If the list of that class is not
// empty the block that was freed last is granted. Otherwise a block is cut from the newest
// region; if too little is left of it that is lost for ever and a new region becomes the
// newest. A freed block goes to its list. Blocks are never split or merged, so a class that
// shrinks never feeds another. The first region is taken by [New].
//
// Since a block once cut stays what it is, its record is its place in the order of cutting:
// an array that is ordered by address within each region, linked into lists by numbers,
// and found by an index from address to number. It grows with every block ever cut.
//
// # Cost
//
// The modern mode costs O(1) a call, O(segments) if a segment steals, and O(log slabs) with
// the lowest address; a slab takes 76 bytes for each sixteen slots begun, rounded up to a power of two
// of them, and 4 to 64 in the atlas, a slice 4 bytes. Nothing is allocated on the heap once as much has been held as
// ever will be.
//
// The other modes cost O(1) a call, and mode "xdl" one step per chunk of a slice when a segment
// attaches it. A chunk takes 40 bytes of host memory, 160 KiB for 1 GiB in units of 4 KiB,
// and a live block 24 to 37 bytes in a table. In mode
// "blaze" every block ever cut takes 40 bytes, and 9 to 14 in an index of its own.
//
// # Alignment
//
// An alignment is honoured if every block has it whatever the state, and refused otherwise:
// up to the largest power of two that divides UnitBytes, in mode "blaze" up to
// MinClassBytes, in both up to the 2 MiB that regions are asked for with. In the modern
// mode a request goes to the smallest class whose slots all have its alignment, or else
// gets a region of its own; up to AlignBytes all are honoured.
//
// # Invariants
//
// The modern mode:
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
// Mode "xdl":
//
// Invariant S1: each chunk is in one list of its segment, that of its class, once.
// Invariant S2: blocks start at used units.
// Invariant S3: there are as many starts of blocks as live blocks.
// Invariant S4: each used run between starts is one live block of the 1 to 4 units it asked for.
// Invariant S5: a segment has attached its slices of the oldest regions and of no others.
// Invariant S6: some segment has attached its slice of the newest region.
// Invariant S7: the regions by age and the regions by address are the same set.
// Invariant S8: the counters are what the walk shows.
// Invariant S9: no free run of a chunk is longer than the one remembered as the longest.
//
// Mode "blaze":
//
// Invariant Z1: the blocks cut from a region tile it from its start without a gap; what
// follows them is what is left of the newest region, or lost.
// Invariant Z2: each block ever cut is live, or in the list of its class once.
// Invariant Z3: the classes whose lists are not empty are known.
// Invariant Z4: the index has every block ever cut.
// Invariant Z5: the regions by age and the regions by address are the same set.
// Invariant Z6: the counters are what the walk shows.
//
// # Sources and departures
//
// The modern mode follows Bonwick (The slab allocator: an object-caching kernel memory
// allocator, USENIX 1994), with the records off the slab, which he has for large objects
// and which is the only form possible where memory is never touched; Bonwick and Adams
// (Magazines and vmem, USENIX 2001) for the magazines; and Linux's SLUB for preferring
// partial slabs to empty ones and full ones to sparse ones. It departs from them:
//
//   - slabs are not coloured, for a GPU's memory has no cache sets worth spreading over;
//   - magazines belong to segments, not to processors, and their size is fixed;
//   - empty magazines, which are a little host memory, are one store for all classes;
//   - empty slabs go back at once or stay, whatever their age.
//
// Mode "xdl" is the slab allocator of Alibaba's X-DeepLearning
// (xdl/core/framework/slab_allocator), mode "blaze" the slab allocator of its inference
// engine (blaze/common/allocator.h), placement by placement. They depart where the
// originals are wrong or end the process:
//
//   - xdl: a size of zero and one above four units are ErrInvalidRequest and do not pass
//     the turn on, where the original returns null or aborts;
//   - xdl: a device refusal is ErrOutOfMemory; the turn has then passed on, as in the original;
//   - xdl: the table of regions grows, where the original overruns 1024 slots; offsets and
//     counts have 64 bits, where the original loses bits of regions above 2 GiB and of
//     requests of 2^32 units; only the turn counter keeps its 32 bits, for they show;
//   - blaze: a size above MaxClassBytes is ErrInvalidRequest, where the original indexes
//     past its table;
//   - blaze: a refused region changes nothing, where the original then grants live memory again;
//   - blaze: Free takes no size, since the block's own is known;
//   - both: freeing what is not the start of a live block is ErrInvalidFree, where the
//     originals accept it and corrupt their state;
//   - both: parameters are checked before they are used.
package slab
