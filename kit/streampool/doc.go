// Package streampool is a stream-ordered pool: memory is allocated and freed in the order of
// the work on streams, and the pool decides when what one stream freed may serve another. It is
// what CUDA's cudaMallocAsync does; the simulated device has its pools from here, and the strategy
// async is one.
//
// # Data structure
//
// Regions of the source are tiled by chunks: rows that know the one before and behind them. A live
// chunk is found by its address. A free chunk belongs to the stream that it was freed on, or to
// nobody once that is known to have reached the free. Each stream has its free chunks by size, in a
// map of kit/index, and as a queue, in the order in which they were freed; those of nobody are
// in a map of their own.
//
// A chunk that belongs to a stream has a mark: an event, recorded behind the work that was queued
// when it was freed. Pieces of one chunk share its mark. Events go round: one whose mark nobody holds is
// the next to be recorded.
//
// A block that was used on more streams than that of its free is pending: it has a mark on each of
// them, and is in no map until all those are done.
//
// # Search
//
// A request takes the smallest chunk that serves, and among equals the lowest, from the first of
// these that has one:
//
//  1. what belongs to its stream or to nobody;
//  2. with Config.FollowEvents, what belongs to a stream behind whose free its own is queued anyway, because
//     of a wait: a device tells if it has a timeline, and of each stream [looks] chunks are asked for;
//  3. with Config.ReuseFinished, what turns out to have finished when the device is asked;
//  4. with Config.InsertWaits, what belongs to any stream, for which its own is made to wait;
//  5. a new region;
//  6. what belongs to nobody once the device has been synchronised;
//  7. a new region, once all that are free went back.
//
// # Split and merge
//
// What a chunk has beyond the request is split off and stays what it was. A freed chunk takes along
// the neighbours of its stream and those of nobody, and its mark is that of the whole: without the second, one
// stream that is never synchronised could not put its own memory together again. Chunks of nobody
// take along each other only.
//
// # Faults
//
// A mark that cannot be recorded is recorded later, when it is first asked for; until then it counts as
// not done. A wait that fails leaves the chunk where it is, and a region that cannot go back stays.
// A source without streams has done everything at once.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log chunks of one size), and a call to record the mark; where
// the stream has nothing, O(streams with a free chunk or a pending one). A search with an alignment above the quantum passes over
// chunks that are large enough but misplaced. Poll asks once for each chunk that is done, and once for each
// stream. Nothing is allocated on the heap once the pool has been as full.
//
// # Invariants
//
// Invariant Q1: chunks tile their region, links mirror.
// Invariant Q2: no two free neighbours belong to the same stream, or both to nobody.
// Invariant Q3: the maps hold exactly the free chunks, each that of whom it belongs to, under its size and address.
// Invariant Q4: the index of addresses holds exactly the live chunks.
// Invariant Q5: the queue of a stream is its free chunks, each with a mark on it; what belongs to nobody has none.
// The busy streams are those with a free chunk, or with a mark that a pending chunk waits for.
// Invariant Q6: a pending chunk counts the marks of other streams that it waits for.
// Invariant Q7: every row is a chunk or spare, every mark and every event is held as often as it counts.
// Invariant Q8: the statistics are the sums over the chunks.
package streampool
