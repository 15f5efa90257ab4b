// Package async is the driver's stream-ordered pool as a strategy: a best fit that knows which
// stream freed what, as CUDA's cudaMallocAsync is one.
//
// # Data structure, search, split and merge
//
// kit/streampool has them, and the simulated device the same for its own pools. In short: a freed
// block belongs to the stream of its request until the device has passed the mark that is recorded with the
// free. A request takes the smallest chunk of its own stream or of nobody; then, with
// Config.FollowEvents, one whose stream its own was made to wait for; with Config.ReuseFinished, what is found
// to have finished; with Config.InsertWaits, any, and its stream is made to wait for that; then a region of
// Config.RegionBytes. When the device is out of memory it is synchronised, and all regions without a
// block go back, before a request is refused.
//
// # More streams
//
// A block that other streams were recorded for (RecordStream) is pending when it is freed, until all
// of them have passed the free; [Allocator.Poll] looks. Then it belongs to the stream of its request.
//
// So a chunk is pending only if nobody may have it. One that its own stream may have at once is free,
// and Walk shows that stream; what belongs to nobody has stream zero and another owner.
//
// # Synchronising
//
// The driver gives memory back when the host synchronises. A strategy is not told of that; whoever
// synchronises polls, and then regions without a block go back, the highest first, as long as
// Config.ReleaseThreshold bytes stay. Trim gives all back.
//
// A device without streams has done everything at once: nothing ever belongs to a stream.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log chunks of one size), and a call to record a mark; where
// the stream has nothing that serves O(streams with a free chunk), and an alignment above 512 bytes passes over chunks that are
// large enough but misplaced. LargestFree costs O(log streams), MetadataBytes O(streams). Nothing is allocated on
// the heap once warm.
//
// # Alignment
//
// Every power of two is honoured; what lies before the aligned place stays free.
//
// # Invariants
//
// Of the pool, see kit/streampool: Invariant Q1 (chunks tile their region), Invariant Q2 (free
// neighbours of one owner are merged), Invariant Q3 (the maps hold the free chunks), Invariant Q4 (the index of
// addresses holds the live chunks), Invariant Q5 (queues hold what belongs to streams), Invariant Q6
// (pending chunks count their marks), Invariant Q7 (rows, marks and events are held as often as they
// count), Invariant Q8 (statistics). Besides:
//
// Invariant A1: the counters are what the walk shows.
//
// # Source and departures
//
// NVIDIA, CUDA C++ Programming Guide, Stream Ordered Memory Allocator, and the CUDA Runtime API, Memory
// Management: Stream Ordered Memory Allocator, which say who may reuse what and when memory goes back. How the
// driver searches, splits and merges they do not say: best fit, and the neighbours that a freed block takes
// along, are ours.
package async
