// Package caching makes the decisions of PyTorch's caching allocator for CUDA devices.
//
// The allocator caches freed memory. It reserves segments, splits blocks from them, and releases
// segments only when a request finds no memory, or by Trim. Small and large blocks, and the blocks
// of each stream, have separate segments. Placement, device calls, statistics and history are
// identical to the original in two of its versions: see [Config] Rules.
//
// # Sizes
//
// A request is rounded up to a multiple of 512 bytes, or, with roundup_power2_divisions, to one of
// a few steps between two powers of two. A request of up to 1 MiB is small and is served from
// segments of 2 MiB. Others are large: below 10 MiB they are served from segments of 20 MiB, and
// from 10 MiB on from a segment of their own size, rounded up to 2 MiB.
//
// # Search
//
// A shelf holds the free blocks of one pool, size kind and stream, ordered by size, then by address
// (in 2.12 by the creation of the block, in 2.13 by that of its segment, then by address). A
// request takes the first block of its own shelf that is large enough. Otherwise the allocator
// takes these steps until one succeeds:
//
//   - With garbage_collection_threshold, and a bound on the bytes held: while more than that share
//     of the bound is held, it releases segments of the large pool that have been free for longer
//     than the average.
//   - It reserves a segment.
//   - Under the rules from 2.11 on: if the request goes to no private pool, it takes a free block
//     of a pool with use_on_oom, as a lookup there would. The pool with the lowest number is first.
//   - With max_split_size_mb: it releases unsplittable blocks of the shelf, the smallest block
//     that suffices alone, otherwise the largest ones until they suffice. Then it reserves again.
//   - Unless requests are redirected into a private pool: it waits for all pending blocks, releases
//     all segments without a live block, and reserves for the last time.
//   - Under the rules of 2.6: the pools with use_on_oom come here, last.
//
// # Split and merge
//
// The remainder is split off if it has at least 512 bytes in a small block, or more than 1 MiB in a
// large one. The request gets the low part. Blocks of max_split_size_mb and more are never split:
// they serve only requests of at least that size that waste less than max_non_split_rounding_mb. A
// freed block coalesces with adjacent free blocks.
//
// # Segments that grow
//
// With expandable_segments a segment is a range of addresses somewhat larger than the device, in
// which pages are mapped on demand: of 2 MiB for small blocks, of 20 MiB for large ones. Mapped and
// unmapped blocks tile it. The size of a free block here includes the unmapped block after it, and
// a request takes the smallest free block by that size, so blocks that can grow are used last. If
// no block is large enough, memory is mapped at the first large enough place in a segment of the
// shelf; a place begins with the free block before an unmapped one. Only whole pages inside free
// blocks are released.
//
// # Streams
//
// A block that other streams use (RecordStream) is pending after its free until each of them has
// finished the work that was queued at the free. Every request polls for that first. A pending
// block does not coalesce.
//
// # Private pools
//
// While requests are redirected into a private pool (BeginPool), as during a graph capture, they
// are served from shelves of that pool, no event is recorded or queried, and blocks that other
// streams use stay pending. The memory of a pool can be released once it has no users.
//
// A pool may have options (BeginMemPool). With use_on_oom its free blocks serve a request outside
// of pools before it fails; such a block stays one of the pool. With no_split no block is split, so
// blocks are whole segments, or the mapped part of one that grows.
//
// In 2.13 this applies to captures only. PyTorch redirects one stream for a capture and all streams
// for a MemPool, and so the stream of the redirection decides here: a redirection of all streams is
// no capture, and during one of a stream, requests on other streams may wait and release.
//
// # Running out of memory
//
// Memory that a failing request released stays released. Every error of the device counts as out of
// memory. Chunks that can neither be used nor released are shown as slack, and every later flush
// retries them.
//
// # Statistics
//
// Counters (see [power.Counted]) have PyTorch's names. Each has a current value, a peak, and the
// sums of its increases and of its decreases, for small blocks, for large blocks and for both.
// Blocks of private pools count by their size kind.
//
//   - allocation and allocated_bytes are the number and the sizes of live blocks;
//   - active, active_bytes and requested_bytes also include pending blocks;
//   - segment is the number of segments that do not grow, reserved_bytes the bytes held by all;
//   - inactive_split and inactive_split_bytes are free blocks that share their segment, unless it
//     grows;
//   - oversize_allocations and oversize_segments are unsplittable blocks and segments;
//   - num_alloc_retries, num_ooms, num_sync_all_streams, num_device_alloc and num_device_free count
//     events, and max_split_size is the setting, -1 without.
//
// The history (see [power.Historian]) contains the internal events: segments reserved, mapped,
// unmapped and released, completed frees of pending blocks, and requests that found no memory.
//
// # Settings
//
// [Config] Conf has the syntax of PYTORCH_CUDA_ALLOC_CONF: key:value pairs separated by commas.
//
//   - max_split_size_mb: blocks of at least this size are never split; above 20, in 2.11 at least
//     the size of a large segment; without it every block is split;
//   - max_non_split_rounding_mb: the most bytes by which such a block may exceed the request, with
//     the same bounds; default 20, in 2.11 the size of a large segment;
//   - roundup_power2_divisions: the number of steps from one power of two to the next, a power of
//     two; 1 and 0 mean none. One number for all sizes, or a list by sizes in MiB such as
//     [256:1,512:2,>:8]: each entry covers its size up to twice that, the first one all smaller
//     sizes, and > the sizes above the last entry, in 2.6 including it;
//   - garbage_collection_threshold: a share above 0 and below 1; it has no effect unless the bytes
//     held are bounded;
//   - expandable_segments: True or False;
//   - large_segment_size_mb (2.11): the size of a segment of the large pool, above 10;
//   - per_process_memory_fraction (2.11): as [Config] MemoryFraction; 1 is no bound;
//   - backend: native. For cudaMallocAsync there is the strategy async.
//
// Accepted without effect are release_lock_on_cudamalloc, pinned_use_cuda_host_register (both with
// hip instead of cuda too), pinned_use_background_threads, pinned_num_register_threads, and in 2.11
// graph_capture_record_stream_reuse, pinned_reserve_segment_size_mb, pinned_free_catch_all,
// throw_on_cudamalloc_oom, expandable_segments_reserve and expandable_segments_reserve_by_class.
//
// A pair that ends in @FROM..TO holds for a phase only (see [Allocator.Mark]): from each mark of
// the program with the text FROM, or the start, to the next one with the text TO, or the end.
// max_split_size_mb, roundup_power2_divisions, garbage_collection_threshold and expandable_segments
// can, all for one phase. A text with a comma, a quote, a bracket, an @ or two dots is quoted as in
// Go.
//
// [Allocator.Configure] parses such a string while the allocator runs, as PyTorch's
// _set_allocator_settings does. Each string resets max_split_size_mb, roundup_power2_divisions and
// garbage_collection_threshold; keys that it does not name otherwise keep their values.
// per_process_memory_fraction has no effect then. Segments stay what they are, so an allocator may
// have both kinds. While expandable_segments is off a lookup skips the free blocks of expandable
// segments. While it is on every block is split by the rule of expandable segments. The counter
// max_split_size keeps its first value, and oversize_allocations, which compares a block with the
// present setting at its grant and at its free, may become negative.
//
// # What is faithful
//
// Surprising behavior of the original that is reproduced:
//
//   - a remainder of exactly 1 MiB stays with a large block; one of 512 bytes is split off a small
//     block;
//   - a request of 10 MiB, also after rounding, gets a segment of its own;
//   - if the first block that is large enough is refused as unsplittable, no other one is tried;
//   - after waiting and releasing, only the device is called and the free blocks are not searched
//     again: a request may fail, and the same request may succeed right after. A retry is counted
//     before its result is known;
//   - large segments are released before small ones, each by stream, size and address, which
//     determines the device's free memory afterwards;
//   - among growing segments the size of a block includes the unmapped block after it, and an equal
//     one does not replace the first; mapping begins at the free block before an unmapped one;
//   - the bound is compared with the size of the segment, not of the request;
//   - each lookup ages all free blocks of its pool, even if it finds a block; the average is not
//     updated before all blocks were compared with it;
//   - in 2.12, the block that a request is cut from stays the older one, and the part that is
//     granted is new; a freed block absorbs its neighbours and keeps its own age;
//   - sizes between two entries of roundup_power2_divisions have no steps;
//   - allocated bytes decrease when a block is freed, active and requested bytes when the free is
//     complete.
//
// # Rules
//
// [RuleSets] lists the rules of each range of releases. Each differs from the one before in this:
//
//   - 2.10 takes a memory fraction of 1 for no limit.
//   - 2.10 gives a request to the redirection begun last, 2.9 to the one begun first.
//   - 2.10 applies the mark > in a list of divisions above the last entry only, 2.9 to that entry
//     too.
//   - 2.10 leaves the blocks of a MemPool with no_split whole, 2.9 does not know the option.
//   - 2.10 takes no block of a MemPool with use_on_oom for a request outside of it while
//     expandable_segments is on, 2.9 does.
//   - 2.12 takes among free blocks of one size the oldest, 2.11 the block at the lowest address.
//   - 2.13 takes among free blocks of one size the block in the oldest segment, 2.12 the oldest
//     block.
//   - 2.13 completes frees that wait for streams and empties the cache while requests go to a
//     MemPool, 2.12 does neither.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log blocks of one size) in the heaps of kit/index, and
// O(log streams + redirections) when the stream changes. While blocks are pending, each request
// queries every stream that they wait for. With growing segments a lookup passes over blocks that
// could grow beyond the size of the next one, and mapping costs O(unmapped blocks). Releasing
// memory costs O(free blocks). Metadata is 40 bytes a block beside the indexes. Nothing is
// allocated on the heap once warm.
//
// # Departures
//
// In every version:
//
//   - a number consists of digits only: PyTorch reads 128GB as 128 MiB, and -1 as a very large
//     number;
//   - a missing colon or comma is an error, also where later versions of the parser overlook it;
//   - a redirection of one stream counts as a capture in 2.13, also if PyTorch captures no graph
//     then, as while it warms up its graph trees;
//   - the rules of 2.11 look into pools with use_on_oom before they release memory, as 2.11 does;
//     2.10, which has the same rules otherwise, does that last, as 2.9;
//   - a pool with use_on_oom is passed over without users, or while requests go to it, where the
//     original ends with an internal error; of several such pools the order is unspecified there;
//   - a free block that shares its segment is not released as unsplittable after max_split_size_mb
//     was lowered; the original returns memory of its neighbors to the device;
//   - private pools without users are released in the order of their numbers; in the original the
//     order is unspecified;
//   - a free of anything but the start of a live block is refused, where the original aborts;
//   - an alignment above 512 is refused; the original has no alignments.
//
// With Mended also:
//
//   - the free blocks are searched once more after all unused segments were released (M1);
//   - without a bound the threshold of the collection is a share of the device (M2);
//   - a block waits for a stream that was recorded during a redirection, also if it was freed
//     during that redirection (M3);
//   - no segment is reserved for a request that is larger than any growing segment (M4).
//
// In every version a private pool is removed when it has no users and holds nothing. The original
// counts reservations by request and releases by block, so with growing segments it keeps some
// pools forever and fails with an internal error when the count becomes negative.
//
// # Data structure
//
// Blocks are rows of a table, 40 bytes each, linked with their neighbors. A shelf belongs to one
// pool, size kind and stream: an ordered index of free blocks (kit/index) and a list of unmapped
// ones. A block never changes its shelf. The original has one set ordered by stream first, which is
// the concatenation of the shelves. A hash table with chains through the rows finds live blocks by
// address. Few blocks are used by other streams; these uses and their marks are stored separately.
// Statistics are kept for small and for large blocks. Sums are derived from both, except for the
// joint peaks.
//
// # When the device refuses
//
// Errors on which the original aborts are survived here, and no memory is lost. A segment that the
// device does not take back stays free in its shelf. Memory that was created but could not be
// mapped is idle and is released at the next Trim, Close or refusal. Mapped memory that could
// neither be made accessible nor unmapped is shown as slack and retried. A block stays pending
// until its streams could be marked and queried.
//
// # Invariants
//
// Invariant P1: the blocks of a segment tile it; links are symmetric.
// Invariant P2: no two adjacent blocks are both free, or both unmapped.
// Invariant P3: all blocks of a segment have one shelf, and every shelf is listed under its pool,
// kind and stream.
// Invariant P4: the table of addresses holds exactly the live blocks.
// Invariant P5: the index of a shelf holds its free blocks, its list the unmapped blocks by
// address.
// Invariant P6: every row is a block of a segment or spare.
// Invariant P7: the counters match the walk.
// Invariant P8: a pending block has a stream to mark or a mark to wait for, and is counted.
// Invariant P9: a live or pending block is large enough for its request, rounded, and of its kind.
// Invariant P10: pages are mapped exactly where blocks have memory.
// Invariant P11: a private pool has users, redirections or segments.
// Invariant P12: an unsplittable block is a whole segment, unless the segment can grow.
// Invariant P13: if ages are counted, each live block caused one lookup, which aged all free
// blocks.
//
// After Configure, P9 holds for the requested size, and P12 and P13 not at all.
//
// # Source
//
// PyTorch, c10/cuda/CUDACachingAllocator.cpp and c10/cuda/CUDAAllocatorConfig.cpp of version 2.6.0,
// with the changes up to 2.11, where the settings are in c10/core/AllocatorConfig.cpp; BSD licence,
// reproduced in behaviour and not in text. The rules of 2.12 and 2.13 are inferred from the answers
// of these releases to the vectors, all of which they reproduce.
package caching
