// Package async is the driver's stream-ordered pool, CUDA's cudaMallocAsync, as a strategy: a best
// fit that knows which stream freed each chunk.
//
// # Data structure, search, split and merge
//
// See kit/streampool, which also implements the pools of the simulated device. In short: a freed
// block belongs to the stream of its request until the device has passed the mark recorded with the
// free; then it is unowned. A request takes the smallest chunk that is unowned or of its own
// stream; then, with Config.FollowEvents, a chunk of a stream that its own stream has waited for;
// with Config.ReuseFinished, a chunk whose mark has been passed; with Config.InsertWaits, any
// chunk, and its stream is made to wait; then a region of Config.RegionBytes. Before a request is
// refused the device is synchronized and all empty regions are released.
//
// # More streams
//
// A block with other recorded streams (RecordStream) is pending after the free until all of them
// have passed it; [Allocator.Poll] checks. Then it belongs to the stream of its request. Walk shows
// the stream of an owned free chunk; an unowned chunk has stream zero and another Owner.
//
// # Synchronizing
//
// The driver gives memory back when the host synchronizes. The strategy cannot see that, so a
// caller that synchronizes polls: regions without a block then go back, the highest first, as long
// as Config.ReleaseThreshold bytes stay. Trim gives all of them back. On a device without streams
// all work has finished at once, and no chunk belongs to a stream.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log chunks of one size), and a call to record a mark; where
// the stream has nothing that serves, O(streams with a free chunk). Every power of two is honoured
// as an alignment; above 512 bytes misplaced chunks are passed over. LargestFree costs O(log
// streams), MetadataBytes O(streams). Nothing is allocated on the heap once warm.
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
// Memory Management: Stream Ordered Memory Allocator, for who may reuse what and when memory goes
// back. They do not say how the driver searches, splits and merges: best fit, and the merging
// across owners, are ours.
package async
