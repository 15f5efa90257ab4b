// Package xdl is the slab allocator of Alibaba's X-DeepLearning
// (xdl/core/framework/slab_allocator), placement by placement: runs of 1 to 4 units inside chunks
// of 64 units, spread over segments that take turns.
//
// # Data structure
//
// A region of RegionBytes is cut into Segments slices of equal size, slice g belonging to
// segment g of every region. A slice is a row of chunks of 64 units of UnitBytes. A chunk
// has two words: which units are free, and at which a block starts. Its class is the
// length of its longest free run, and 4 stands for all longer ones. Each segment keeps the
// chunks of the slices that it has attached in five circular lists, one for each class, linked
// by the numbers of chunks. The chunk that was touched last is in front. A table of live blocks,
// by address, holds each block's chunk and unit.
//
// # Search
//
// A request of n units goes to the segment whose turn it is; every request that is not
// refused as invalid passes the turn on, granted or not. The segment takes the front chunk
// of its list n, or of the next list that is not empty, and in it the lowest place where n
// units are free. If all are empty it attaches its slice of the oldest region of which it has
// not attached one yet. If there is no such region it reserves a new one; other segments attach
// their slices of that when they run out themselves. A slice's chunks join list 4 with the
// lowest in front.
//
// # Split and merge
//
// Nothing is split: a block is a run of bits. Freeing a block sets its bits, which joins it with
// adjacent free bits. The length of a block is not stored: it ends where the next one starts, at
// the next free unit, or with the chunk. Runs do not cross chunks. Granting and freeing both move
// the chunk to the front of its class, even if the class stays the same.
//
// A segment never takes from another one. Long-lived requests at a stride that shares a
// factor with the number of segments pile up in a few of them, and then hold up to
// Segments times the memory they need. That is the original's behaviour (defect S-4 of
// its analysis) and kept; one segment avoids it.
//
// # Cost
//
// A call costs O(1), and one step per chunk of a slice when a segment attaches it. A chunk takes
// 40 bytes of host memory, 160 KiB for 1 GiB in units of 4 KiB, and a live block 24 to 37 bytes in
// a table.
//
// # Alignment
//
// An alignment is honored if every block has it in every state, and refused otherwise: up to the
// largest power of two that divides UnitBytes and up to the 2 MiB alignment of regions.
//
// # Locks
//
// With Config.Locks it has the original's: a mutex for each segment, and one for growth that is
// taken last. A free finds its segment by the address, without a lock. Each segment is then an
// allocator of one segment over the slices of the shared regions, so one thread gets the same
// placements. Counters and walks take every lock. Uncontended, the locks cost about as much as the
// allocator.
//
// # Invariants
//
// Invariant S1: each chunk is exactly once in the list of its class in its segment.
// Invariant S2: blocks start at used units.
// Invariant S3: there are as many starts of blocks as live blocks.
// Invariant S4: each used run between starts is one live block of the 1 to 4 units it asked for.
// Invariant S5: a segment has attached its slices of the oldest regions and of no others.
// Invariant S6: some segment has attached its slice of the newest region.
// Invariant S7: the regions by age and the regions by address are the same set.
// Invariant S8: the counters match the walk.
// Invariant S9: no free run of a chunk is longer than the recorded longest run.
//
// # Departures
//
// The allocator departs where the original is wrong or ends the process:
//
//   - a size of zero and one above four units are ErrInvalidRequest and do not pass
//     the turn on, where the original returns null or aborts;
//   - a device refusal is ErrOutOfMemory; the turn has then passed on, as in the original;
//   - the table of regions grows, where the original overruns 1024 slots; offsets and
//     counts have 64 bits, where the original loses bits of regions above 2 GiB and of
//     requests of 2^32 units; only the turn counter keeps its 32 bits, for they show;
//   - freeing what is not the start of a live block is ErrInvalidFree, where the
//     original accepts it and corrupts its state;
//   - parameters are checked before they are used.
package xdl
