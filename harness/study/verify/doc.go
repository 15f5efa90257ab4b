// Package verify checks whether a strategy places allocations as a recorded allocator did.
//
// A [History] is the recording: the segments and blocks at its start, then each allocation with its
// address, each free, and each segment reserved or released. [Run] seeds a strategy with the
// opening state and replays the same requests. An allocation is predicted if the strategy
// returns the recorded address, and reserves a new segment exactly where the recording does, of the
// same size.
//
// The recording lacks the capacity of the card, so two things are taken from it: the address of
// each new segment, and when which segment is released.
//
// # After a disagreement
//
// After a disagreement the strategy's heap differs, and later comparisons mean little. So a new
// strategy is seeded with the recorded state, and every allocation is compared on the recorded
// heap. That costs a step for each live block. After 1000 disagreements, or if the strategy rejects
// a recorded heap, the comparison stops.
//
// # The opening state
//
// A recording has the requested size of each block, not the granted one. A block of a large segment
// keeps a remainder of up to 1 MiB. The start of the next block reveals it, then or later in the
// block's life, since no block of a large segment fits into the remainder. If no block is ever
// placed above, the remainder is unknown, the hole above appears up to 1 MiB too large, and a
// prediction may choose another hole. Segments of 2 MiB are for small blocks, all others for large
// ones.
//
// # Snapshots
//
// [FromTimeline] converts a device of a PyTorch memory snapshot to a history. Blocks live at its
// end have their exact sizes. A request whose block lies in a segment of a private pool is served
// from that pool. The pool of a segment that was reserved and released within the recording is
// unknown; it counts as the default pool.
//
// # Expandable segments
//
// A snapshot has the mapped memory of an expandable segment, but not its address range. PyTorch
// creates one range, larger than the device, for each pool, stream and size class, and maps the
// lowest free addresses first. So all memory mapped for one of them belongs to one range. It starts
// at the lowest address mapped while it has memory, since nothing is placed below, and extends
// beyond the highest, since it is never full. An allocation is predicted if exactly the recorded
// memory is mapped for it.
//
// # Files
//
// A history can also be read from two files. The trace has the requests, in any form that
// harness/trace reads. Allocations live at the start come first: live-at-start events, or, in a
// CSV, allocations whose tag begins with "preexisting". A delayed free takes effect when it
// completes. The second file has the addresses, as CSV:
//
//	what,seq,address,bytes
//	alloc,0,30140268544,4194304
//	initial_segment,,30136074240,20971520
//	segment_alloc,7,30157045760,2097152
//	alloc,7,30157045760,512
//	segment_free,9,30157045760,2097152
//
//	alloc            address and requested bytes of the allocation of event seq
//	initial_segment  a segment at the start of the recording; it has no seq
//	segment_alloc    a segment reserved for event seq, an allocation
//	segment_free     a segment released just before event seq
//
// seq counts the events of the trace from 0, without marks. Rows with a seq are in chronological
// order. Every allocation has a row, and every free refers to one. Impossible rows are errors with
// the line: overlapping blocks or segments, blocks outside of a segment, released segments with
// live blocks, and blocks of two streams in one segment. The stream of a segment follows from its
// allocations, recorded ones before those live at the start.
package verify
