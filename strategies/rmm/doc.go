// Package rmm has three memory resources of NVIDIA's RAPIDS Memory Manager (RMM): pool, arena and
// binning over a pool. Blocks lie where the original places them, and the device gets the same
// calls.
//
// # Data structure
//
// Chunks tile the regions and are linked to their neighbors. An index of addresses holds the live
// ones. The resources differ in what holds the free ones:
//
//   - pool: a list for each stream, by size and address (kit/index). The stream that freed a chunk
//     may use it at once.
//   - binning: for each bin, a power of two, a queue for each stream. Blocks of a bin are live
//     chunks of the pool below, which is a pool as above and also serves what exceeds the largest
//     bin.
//   - arena: one region is cut into superblocks of at least 1 MiB. A superblock belongs to the
//     global arena or to the arena of a stream. Each arena has its free chunks by address.
//
// # Search of a pool or a bin
//
// A request is rounded up to 256 bytes. It takes, from the first of these that has room:
//
//   - the list of its stream;
//   - the lists of the other streams, in the order in which the resource first saw them. The stream
//     of the request is made to wait for the event that was recorded with the last free there;
//   - its own list, after the list of another stream was merged into it, one after the other, each
//     with a wait;
//   - a new region, or for a bin the next Config.BinBlocks blocks from the pool.
//
// From a list of a pool it takes the smallest chunk that is large enough, the lowest of equals. A
// remainder stays in the list. Freed chunks merge with free neighbors of the same list only. From a
// queue of a bin it takes the block that was freed first.
//
// # Growth of a pool
//
// A region is as large as all regions before it together, or half of the rest below Config.Limit,
// and at least the request. If the device refuses, half as much is tried, down to the request.
// Regions are never joined and never released. The size of a region need not be a multiple of 256:
// the odd bytes are never used, but count when sizes of chunks are compared.
//
// # Search of an arena
//
// Requests up to 1 MiB take the first chunk by address in the arena of their stream that is large
// enough. Without one, the arena gets the superblock of the first such chunk of the global arena:
// if it is vacant and at least 2 MiB, only its first 1 MiB. Larger requests take the first chunk of
// the global arena, which is cut into superblocks likewise. A freed chunk merges with free
// neighbors in its superblock. A vacant superblock of the global arena merges with vacant neighbors
// there.
//
// A superblock stays with the arena of a stream until a request finds nothing. Then the device is
// synchronized, all superblocks go to the global arena, with their live blocks, and the request is
// tried once more. A block above 1 MiB, and a block whose superblock is not in the arena of its
// stream, is freed after its stream was synchronized.
//
// # Cost
//
// A pool takes O(1), amortized O(log chunks of one size), and O(streams) if the stream has no chunk
// that fits; merging costs a step for each chunk. A bin takes O(1). An arena takes O(log free
// chunks), and up to O(free chunks / 64) leaves of its list for the search. Each free from a pool
// or a bin is a call to the device, which records an event. In steady state nothing is allocated.
// Host memory is 64 bytes for each chunk, and its place in the index or in a list.
//
// # Invariants
//
// Invariant N1: rows tile the regions, links are symmetric, and every other row is spare.
// Invariant N2: the map of addresses holds exactly the live chunks.
// Invariant N3: a list of a pool or a bin holds exactly the free chunks of its stream, under their
// size and address; the blocks of a bin have one size.
// Invariant N4: superblocks tile the arena, and the list of an arena holds exactly the free chunks
// of its superblocks; no chunk exceeds the bound of its leaf.
// Invariant N5: no two free neighbors of one list of a pool or of one superblock stay apart, nor
// two vacant superblocks of the global arena.
// Invariant N6: the counters match the walk.
//
// # Source and departures
//
// RMM 25.12.00 (Apache-2.0): pool_memory_resource, arena_memory_resource, binning_memory_resource
// and fixed_size_memory_resource, with stream_ordered_memory_resource, coalescing_free_list and
// arena in detail. No text of it is here. 30 traces answered by the original give the same
// placements, refusals, regions, and numbers of events recorded, waits and synchronizations.
// Departures:
//
//   - A block is freed on the stream of its request. RMM's caller names a stream.
//   - Lists are in the order of the first use of their streams. In RMM they are in the order of the
//     addresses of their events, which CUDA chooses. Stream 0 is the legacy default stream. Arenas
//     of threads, which RMM has for the default stream of a thread, are not here: threads that
//     share a stream share its arena.
//   - The first region and the first blocks of bins are reserved with the first request, not by
//     New. If the device refuses them, requests fail until it does not, where RMM's constructor
//     fails.
//   - By default a pool begins with half of the free memory, as in RMM's Python interface. Without
//     a limit on the device, its free memory counts as 1 TiB.
//   - Config.Limit is rounded down to 256 bytes, and the first region is at most the limit. RMM
//     refuses other values.
//   - If the device refuses to record an event or to wait for it, the memory of that stream is
//     passed over. RMM reports the error and loses the chunk.
//   - A request for no bytes, and one above 1 EiB, is invalid, not null and out of memory.
//
// Stats.Limit is 0: RMM's maximum bounds the bytes requested from the device, which rounds them up,
// and RMM itself rounds the rest below the maximum up to 256 bytes. So a pool can exceed its
// maximum by up to 255 bytes, as the recorded trace limit_exceeded shows.
package rmm
