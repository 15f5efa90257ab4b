// Package streampool is a stream-ordered pool like CUDA's cudaMallocAsync: memory is allocated and
// freed in the order of the work on streams, and the pool decides when memory freed by one stream
// may serve another. The pools of the simulated device and the strategy async use it.
//
// # Data structure
//
// Chunks tile the regions of the source and are linked to their neighbors. A live chunk is found by
// its address. A free chunk belongs to the stream that freed it until the stream is known to have
// reached the free; from then on it is unowned and usable by every stream. Each stream has its free
// chunks in a map by size (kit/index) and in a queue by time of the free. Unowned chunks have a map
// of their own.
//
// An owned chunk has a mark: an event recorded after the work that was queued at the free. Parts of
// a split chunk share its mark. When the last holder drops a mark its event is recycled. A freed
// block that other streams have used is pending: it has a mark on each of these streams, and enters
// a map when all marks are done.
//
// # Search
//
// A request takes the smallest chunk that fits, the lowest of equals, from the first source that
// has one:
//
//  1. chunks of its own stream and unowned chunks;
//  2. with Config.FollowEvents, chunks of another stream whose free precedes the request because of
//     a wait between the streams (the device's timeline is queried for [mostQueries] chunks a
//     stream);
//  3. with Config.ReuseFinished, chunks whose marks are done by now;
//  4. with Config.InsertWaits, chunks of any stream: the requesting stream is made to wait for
//     them;
//  5. a new region;
//  6. unowned chunks after the device was synchronized;
//  7. a new region after all free regions were released.
//
// # Split and merge
//
// The remainder of a split keeps its owner. A freed chunk coalesces with adjacent chunks that are
// unowned or of its own stream, and the result has the later mark. Without the unowned ones a
// stream that is never synchronized could not reassemble its own memory. Unowned chunks coalesce
// with unowned chunks only.
//
// # Faults
//
// A mark that cannot be recorded counts as not done; recording is retried at the next query. After
// a failed wait the chunk stays where it is. A region that the source does not release stays. On a
// source without streams all work counts as finished at once.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log chunks of one size), and a device call that records the
// mark. Where the stream has no fitting chunk, Alloc costs O(streams with a free or pending chunk).
// An alignment above the quantum skips misplaced chunks. Poll queries the device once for each
// finished chunk and once for each stream. In steady state nothing is allocated on the heap.
//
// # Invariants
//
// Invariant Q1: chunks tile their region, links mirror.
// Invariant Q2: no two adjacent free chunks have the same owner, or are both unowned.
// Invariant Q3: every free chunk is in the map of its owner, under its size and address, and the
// maps hold nothing else.
// Invariant Q4: the index of addresses holds exactly the live chunks.
// Invariant Q5: the queue of a stream holds its free chunks, each with a mark on that stream.
// Unowned chunks have no mark. A stream is busy if it has a free chunk or a mark that a pending
// chunk waits for.
// Invariant Q6: a pending chunk counts the marks of other streams that it waits for.
// Invariant Q7: every row is a chunk or spare; the reference counts of marks and events are exact.
// Invariant Q8: the statistics are the sums over the chunks.
package streampool
