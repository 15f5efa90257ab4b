// Package slabbuddy serves small requests from slabs and medium ones from a buddy, both out of one
// pool of regions, and large ones by regions of their own.
//
// # Data structure
//
// The buddy is the engine of strategies/internal/blocks, the slabs are the engine of
// strategies/internal/cells. A slab is one block of the buddy: the smallest with room for SlabSlots
// slots that leaves at most one part in SlabWaste after the last slot. So the first request of a
// class takes eight times its size, not a region.
//
// A free tries the slabs first, which find a slot from the address alone. Other live blocks
// are in a hash table with their requests, and the buddy finds the region of a block from its
// address.
//
// # Search
//
//	request                     served by          granted
//	0                           -                  ErrInvalidRequest
//	1 .. SlabMaxBytes           slot of a slab     the class's slot, at most a quarter more
//	.. DirectBytes              block of the buddy the family's next size
//	above                       a direct region    whole BlockBytes, a kept region up to 1/8 more
//
// A slot comes from a magazine, the selected slab, an empty slab or a new slab, in this order. A
// block comes from the place that Placement and RegionChoice determine. A direct region has one
// block, and the smallest kept region that fits is used. Only then a region of the size that Growth
// determines is reserved.
//
// # Split and merge
//
// A slab without a used slot, beyond the EmptySlabs of its class, is a block of the buddy again and
// merges with its buddies. A region without a live block, beyond KeepBytes, is released if Release
// is set. So memory that one class frees serves every other. A direct region is kept when its block
// is freed, up to DirectCacheBytes, or by default while kept and used ones together are at most a
// quarter above the most ever in use.
//
// # When memory runs out
//
// When the device or the limit refuses a region, memory is given up in this order. The request is
// tried again after each step that gave up any:
//
//  1. magazines are emptied into their slabs;
//  2. empty slabs become blocks of the buddy;
//  3. empty and kept regions are released;
//  4. the device is asked again, if anything was released;
//  5. the request takes another path: a small one a block of the buddy or a region, a medium
//     one a region, which may be smaller than a block, a large one the pool;
//  6. it is refused, and [power.LastRefusal] returns why.
//
// # Cost
//
// A slot costs O(1); a block one probe of the hash table, one search in two sets and a step for
// each split or merge. Neither depends on the number of slabs or regions. A slab of up to sixteen
// slots takes 80 bytes and 4 to 64 in the atlas; a block of the buddy an entry of the table; the
// sets of the buddy 16 bytes for each region and class and two bits for each unit.
//
// # Growth and alignment
//
// By default a region is a sixteenth of the pool, at least 16 KiB. Regions are aligned to 2 MiB,
// the largest alignment that is honoured. A request that a slot would not align goes to a larger
// class or to the buddy.
//
// # Why these defaults
//
// They were chosen by three figures: the mean over the seven recorded traces of least memory over
// the lower bound, device calls, and the time of a pair of calls on sizes log-uniform from 256 B to
// 1 MiB. The page of this strategy under docs/strategies has the figures.
//
//   - DirectBytes 1 MiB: larger blocks cost more by fragmenting the buddy than by separate regions.
//   - Trim off: tails fill the sets with unused pieces and double the time.
//   - SlabMaxBytes 32 KiB: larger slabs would be as large as the whole heap of a small program.
//
// # Invariants
//
// Invariant W1: a slab is one block of the buddy, and that block belongs to the slab alone. It is
// as large as the slab, or a larger kept region whose rest is slack.
// Invariant W2: each block granted by the buddy is a slab or a live block; the table holds the live
// blocks.
// Invariant W3: the size of a live block in a slot has a class, at most the class of the slot.
// Invariant W4: each part keeps its own invariants, C for slabs and H for the buddy.
// Invariant W5: no request is refused while a magazine has a slot, an empty slab is held, or the
// device would take back an empty region.
// Invariant W6: the counters match the walk.
//
// # Source and departures
//
// Slabs over a buddy are Bonwick's (The Slab Allocator, USENIX 1994) and Linux's, where slabs take
// pages from the buddy below and large requests pass them by. Unlike theirs, nothing is written
// into the memory, so a free uses the atlas in place of a page header.
package slabbuddy
