// Package streampool is a stream-ordered pool like CUDA's cudaMallocAsync: memory is allocated and
// freed in the order of the work on streams, and the pool decides when memory freed by one stream
// may serve another. The pools of the simulated device and the strategy async are made of it.
//
// # Data structure
//
// Chunks tile the regions of the source and know their neighbors. A live chunk is found by its
// address. A free chunk belongs to the stream that freed it, or to nobody once the stream is known
// to have reached the free. Each stream has its free chunks in a map by size (kit/index) and in a
// queue by the time of the free; the chunks of nobody are in a map of their own.
//
// A chunk of a stream has a mark: an event recorded behind the work that was queued at the free.
// Parts of one chunk share its mark. The event of a mark without holders is recycled. A block used
// on other streams too is pending when it is freed: it has a mark on each of them, and is in no map
// until all are done.
//
// # Search
//
// A request takes the smallest chunk that serves, among equals the lowest, from the first source
// that has one:
//
//  1. the chunks of its stream and of nobody;
//  2. with Config.FollowEvents, chunks of a stream behind whose free its own stream is queued
//     because of a wait: the timeline of the device is asked about [looks] chunks of each stream;
//  3. with Config.ReuseFinished, chunks that have finished when the device is asked;
//  4. with Config.InsertWaits, chunks of any stream, for which its own stream is made to wait;
//  5. a new region;
//  6. the chunks of nobody after the device was synchronized;
//  7. a new region after all free regions went back.
//
// # Split and merge
//
// The remainder of a chunk keeps its owner. A freed chunk merges with the neighbors of its stream
// and of nobody, and the whole has its mark; otherwise one stream that is never synchronized could
// not reassemble its own memory. Chunks of nobody merge with each other only.
//
// # Faults
//
// A mark that cannot be recorded counts as not done and is recorded when it is next asked for. A
// wait that fails leaves the chunk where it is, and a region that cannot go back stays. A source
// without streams has finished all work at once.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log chunks of one size), and a call to record the mark;
// where the stream has nothing, O(streams with a free chunk or a pending one). An alignment above
// the quantum passes over misplaced chunks. Poll asks once for each finished chunk and once for
// each stream. Nothing is allocated once the pool has been as full.
//
// # Invariants
//
// Invariant Q1: chunks tile their region, links mirror.
// Invariant Q2: no two free neighbours belong to the same stream, or both to nobody.
// Invariant Q3: the maps hold exactly the free chunks, each that of whom it belongs to, under its
// size and address.
// Invariant Q4: the index of addresses holds exactly the live chunks.
// Invariant Q5: the queue of a stream is its free chunks, each with a mark on it; what belongs to
// nobody has none. The busy streams are those with a free chunk, or with a mark that a pending
// chunk waits for.
// Invariant Q6: a pending chunk counts the marks of other streams that it waits for.
// Invariant Q7: every row is a chunk or spare, every mark and every event is held as often as it
// counts.
// Invariant Q8: the statistics are the sums over the chunks.
package streampool
