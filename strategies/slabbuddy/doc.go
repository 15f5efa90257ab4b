// Package slabbuddy serves small requests from slabs, medium ones from a buddy, and large ones
// by regions of their own, all out of one pool of regions.
//
// # Data structure
//
// [blocks.Engine] has the regions of the pool and the free blocks in them, [cells.Engine] the
// slabs, each of which is one block of that buddy. A slab has the size of the smallest block
// with room for SlabSlots slots that leaves at most one part in SlabWaste behind the last: so
// the first request of a class takes eight times its size, not a region.
//
// A free asks the slabs first, who find the slot of an address from that alone, see package
// slab. What is in none is looked up in the table of the other live blocks, which keeps what was
// asked for, while the buddy tells from the address which region the block lies in or is; an
// address that is not in the table was not granted.
//
// # Search
//
//	request                     served by          granted
//	0                           nobody             ErrInvalidRequest
//	1 .. SlabMaxBytes           slot of a slab     the class's slot, at most a quarter more
//	.. DirectBytes              block of the buddy the family's next size
//	above                       a region alone     whole BlockBytes, a kept region up to 1/8 more
//
// A slot comes from a magazine if there are any, from the slab that Selection says, from one
// that is empty, from a block of the buddy; a block from where Placement and RegionChoice say; a
// region alone from those that are kept, the smallest that fits. Only then the device is asked,
// for a region as large as Growth says.
//
// # Split and merge
//
// A slab without a used slot, of which its class keeps EmptySlabs, is a block of the buddy
// again and merges with its buddies; a region without a live block, of which KeepBytes stay,
// goes back to the device if Release is set. So what one class frees any other can have. A
// region alone is kept when it is freed, up to DirectCacheBytes, or by default while those kept
// and in use come to no more than a quarter above the most that were in use.
//
// # When memory runs out
//
// When the device, or the limit, refuses a region, memory is given up in this order, and after
// each rung that had any the request is tried again:
//
//  1. magazines are emptied into their slabs;
//  2. empty slabs become blocks of the buddy;
//  3. empty regions and kept ones go back to the device;
//  4. the device is asked again, if anything went back;
//  5. the request is served alone: a small one by a block of the buddy or a region, a medium
//     one by a region, which may be smaller than a block, a large one by the pool;
//  6. it is refused, and [Allocator.LastRefusal] tells why.
//
// # Cost
//
// A slot costs O(1), a block one probe of the hash table, one search in
// two sets and a step for each split or merge; neither depends on how many slabs or regions
// there are. Metadata is 80 bytes for each slab of up to sixteen slots, and 4 to 64 that lead
// to it; an entry of the table for each block of the buddy; and the buddy's sets, 16 bytes for each
// region and class and two bits for each unit.
//
// # Growth and alignment
//
// Policies of kit/regions; by default a region has a sixteenth of what the pool has, 16 KiB
// at least. Regions are aligned to 2 MiB, which is the largest alignment that is honoured. A
// request that a slot would not align goes to a larger class or to the buddy.
//
// # What chose the defaults
//
// The seven recorded traces, the mean of least memory over the lower bound, device calls, and
// the time of a pair of calls on sizes log-uniform from 256 B to 1 MiB. The page of this
// strategy under docs/strategies has the figures.
//
//   - DirectBytes 1 MiB: what is larger fragments a buddy more than it costs to keep apart.
//   - Trim off: tails fill the sets with pieces that nobody asks for, and double the time.
//   - SlabMaxBytes 32 KiB: beyond, slabs are as large as what a small program holds in all.
//
// # Invariants
//
// Invariant W1: a slab is one block of the buddy, and the blocks of slabs are theirs; the
// block is as large as the slab, or a kept region that is larger, whose rest is slack.
// Invariant W2: what the buddy granted is a slab or a live block, and the table has the latter.
// Invariant W3: a live block in a slot is of a size that has a class, that of the slot or one
// below it.
// Invariant W4: each part keeps its own invariants, C for slabs and H for the buddy.
// Invariant W5: nothing is refused while a magazine has a slot, or a slab without a used one is
// held, or a region without a live block that the device would take.
// Invariant W6: the counters are what the walk shows.
//
// # Source and departures
//
// Slabs over a buddy are Bonwick's (The Slab Allocator, USENIX 1994) and Linux's, where slabs
// take pages from the buddy below and large requests pass them by. What is not theirs: nothing
// is written into the memory, so a free needs the atlas where they read a page's header.
package slabbuddy
