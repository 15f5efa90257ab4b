// Package verify asks whether a strategy would have done what a recording says that an allocator
// did.
//
// A [History] is such a recording: the segments and blocks that were there when it began, and then
// each allocation with the address it got, each free, and each segment taken from the device or
// given back. [Run] seeds a strategy with the opening state and has it serve the same requests. An
// allocation is predicted if the strategy grants a block at the recorded address, and takes a new
// segment, of the recorded size, exactly where the recording has one.
//
// The card's capacity is in no recording, so what the strategy cannot know is taken from there: the
// address of each new segment, and when which segment goes back to the device.
//
// # After a disagreement
//
// A strategy that has placed a block elsewhere has another heap from then on, and whatever it does
// next says little. So a fresh one is seeded with the recorded state after the disagreement, and
// every allocation is judged on the recording's own heap. That costs a step for each live block;
// after 1000 disagreements, or where the strategy refuses such a heap, no further allocation is
// looked at.
//
// # The opening state
//
// A recording tells what each block was asked for, not what was granted. A block of a large segment
// keeps a rest of up to 1 MiB, which shows where the next block begins no further behind it, now
// or, as long as the block lives, later: no block of a large segment is so small that it would fit
// between. Where nothing is ever placed behind it the rest stays unseen; then the hole there seems
// larger than it was, by up to 1 MiB, and a request may be predicted to find another one. A segment
// of 2 MiB is one for small blocks, every other one is for large ones.
//
// # Snapshots
//
// [FromCourse] makes a history of a device's part of a PyTorch memory snapshot. Blocks that are
// still there at its end have their true sizes. A request whose block lies in a segment of a
// private pool is served from that pool; where nothing tells the pool of a segment, because it came
// and went between the snapshot's two ends, it is the default pool.
//
// # Segments that grow
//
// Of a segment that grows a snapshot has what is mapped, not the range of addresses around it.
// PyTorch makes one range, larger than the device, for each pool, stream and size kind, and maps
// what lies lowest first. So all that is mapped for one of them is one range: it begins at the
// lowest address that is mapped as long as it has memory, because nothing is placed below, and goes
// on above the highest, because it is never full. An allocation is predicted if exactly the
// recorded memory is mapped for it.
//
// # Files
//
// A history is also read from two files. The trace has the requests, in any form that harness/trace
// reads. Allocations that were live when the recording began come first: live-at-start events,
// or, in a CSV, allocations whose tag begins with "preexisting". A free that is completed later
// takes effect there. The second file has the addresses, as CSV:
//
//	what,seq,address,bytes
//	alloc,0,30140268544,4194304
//	initial_segment,,30136074240,20971520
//	segment_alloc,7,30157045760,2097152
//	alloc,7,30157045760,512
//	segment_free,9,30157045760,2097152
//
//	alloc            where the allocation of event seq lies, and the bytes it asked for
//	initial_segment  a segment that was there when the recording began; it has no seq
//	segment_alloc    a segment taken from the device to serve event seq, an allocation
//	segment_free     a segment given back just before event seq
//
// seq counts the events of the trace from 0, marks left out. Rows with a seq are in the order of
// what happened. Every allocation has its row, every free leads to one, and whatever cannot have
// been so (blocks that overlap or lie in no segment, segments that overlap or go back with a live
// block in them, blocks of two streams in one segment) is an error that names the line. The stream
// of a segment is that of the allocations in it, those of the recording before those that were
// live when it began.
package verify
