// Package async is the driver's stream-ordered pool, CUDA's cudaMallocAsync, as a strategy: a best
// fit that records which stream freed each chunk.
//
// # Data structure, search, split and merge
//
// See kit/streampool, which also implements the pools of the simulated device. In short: a freed
// block belongs to the stream of its request until the device has passed the mark recorded with the
// free; then it is unowned. A request takes the smallest chunk that fits from the first of these:
//
//   - unowned chunks and chunks of its own stream;
//   - with Config.FollowEvents, chunks of a stream that its own stream has waited for;
//   - with Config.ReuseFinished, chunks whose mark has been passed;
//   - with Config.InsertWaits, all chunks: its stream is made to wait for the mark;
//   - a new region of Config.RegionBytes.
//
// Before a request is refused the device is synchronized and all empty regions are released.
//
// # More streams
//
// A block with other recorded streams (RecordStream) is pending after the free until all of them
// have passed it, which [Allocator.Poll] checks. Then it belongs to the stream of its request. Walk
// shows the stream of an owned free chunk; an unowned chunk has stream zero and another Owner.
//
// # Synchronizing
//
// The driver releases memory when the host synchronizes. The strategy cannot detect that, so a
// caller that synchronizes also polls. A poll releases empty regions, the highest first, as long as
// Config.ReleaseThreshold bytes stay. Trim releases all of them. On a device without streams all
// work counts as finished at once, and no chunk belongs to a stream.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log chunks of one size), and a call to record a mark. If
// the stream has no chunk that fits, Alloc costs O(streams with a free chunk). Every power of two
// is honoured as an alignment; above 512 bytes misplaced chunks are skipped. LargestFree costs
// O(log streams), MetadataBytes O(streams). In steady state nothing is allocated on the heap.
//
// # Invariants
//
// Of the pool, see kit/streampool: Invariant Q1 (chunks tile their region), Invariant Q2 (free
// neighbours of one owner are merged), Invariant Q3 (the maps hold the free chunks), Invariant Q4
// (the index of addresses holds the live chunks), Invariant Q5 (queues hold what belongs to
// streams), Invariant Q6 (pending chunks count their marks), Invariant Q7 (rows, marks and events
// are held as often as they count), Invariant Q8 (statistics). Also:
//
// Invariant A1: the counters match the walk.
//
// # Source and departures
//
// NVIDIA, CUDA C++ Programming Guide, Stream Ordered Memory Allocator, and the CUDA Runtime API,
// Memory Management: Stream Ordered Memory Allocator. They document which stream may reuse which
// memory, and when memory is released. They do not document how the driver searches, splits and
// merges: best fit, and the merging across owners, are ours.
package async
