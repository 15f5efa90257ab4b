// Package bfc places blocks by best fit with coalescing, as TensorFlow and XLA do.
//
// The allocator reserves a few large regions, splits them into chunks, grants the smallest free
// chunk that is large enough and splits off a large remainder. A freed chunk coalesces with
// adjacent free chunks. Sizes and addresses are multiples of 256 bytes. Placement, region sizes,
// statistics and the reuse of handles are identical to the original in three of its versions: see
// [Variant].
//
// docs/strategies/bfc.md explains the allocator step by step, with drawings, and maps the names in
// the original to the names here.
//
// # Data structures
//
// A chunk is a 32-byte record in one table. Its index in the table is its handle; prev and next are
// the handles of the adjacent chunks of the region. Rarely needed fields (counts of frees, labels,
// requested sizes far below the size) lie in columns beside the table, which exist only when used.
// Retired handles are reused, newest first.
//
// Bins hold the free chunks, ordered by size, then address. Bin b starts at 256 B << b; the
// 21st, number 20, starts at 256 MiB and is open-ended. The ranges of bins do not overlap, so one
// index over all of them (kit/index) has the same order, and the bin of a chunk is computed from
// its size. A free chunk records its entry in that index, so its removal needs no search.
//
// Regions lie in a table of their own with a list in address order. The record of a region holds
// the number of its live chunks, its first and last chunk, and the starts of the reservations that
// it was joined from.
//
// The address index (kit/index) maps the start of each live chunk to its handle. A free of any
// other address is refused, except that of address 0, which does nothing.
//
// # Search
//
// A request is rounded up to 256 bytes and gets the smallest free chunk that is large
// enough, among equals the one at the lowest address. A request with a bound on the count
// passes over chunks freed after it; one with an alignment above 256, which only the
// variant of 2026 supports, passes over chunks without an aligned place. If nothing fits, a
// new region is taken. If that fails, unsafe chunks are merged by force, unless the request has a
// bound. The last resort, if garbage collection is on, is to release all regions without a live
// block and to take a new one.
//
// A new region has the size that [alloc.Stats] shows as NextRegion, doubled until the request fits,
// and clipped to the limit. It doubles once more after each region. If the device refuses, the size
// is reduced to nine tenths repeatedly, until the device grants or the request would not fit.
//
// # Split and merge
//
// A chunk is split if the remainder is at least as large as the rounded request, or at least the
// waste limit: 128 MiB, or a share of the limit. A smaller remainder is granted with the block. A
// freed chunk merges with the next chunk, then with the previous one.
//
// # Timestamps
//
// With timing each free takes the next count and the freed chunk is unsafe: it can be granted, but
// is not merged until its count is below the safe frontier. It waits in a queue. The next Alloc
// sweeps the queue: it drops chunks granted since then and merges the chunks below the frontier.
//
// # Two ends
//
// With spatial the region has a lower end that grows upwards, an upper end that grows
// downwards, and a gap between them that belongs to neither. A request names its end by
// [alloc.Request] Hint, takes a hole of that end, else cuts into the gap: the lower end by
// the rule for splits, the upper end exactly. A freed chunk that bounds its end falls back to the
// gap. [alloc.Chunk] Owner is one of [OwnerNone], [OwnerLower], [OwnerUpper] and [OwnerGap].
//
// # Cost
//
// Alloc and Free cost O(1), except for the heaps (see kit/index) with O(log chunks of one size)
// amortized, and allocate nothing in steady state. A failing request costs the same. Exceptions: a
// bound on the count or an alignment above 256 walks the chunks it skips; a new region moves the
// list of regions. A sweep costs O(merged chunks), once for each free; a forced one visits the
// whole queue. Metadata is 32 bytes a chunk, 9 to 14 a live chunk in the index, about 32 a free
// chunk in the bins, 16 a chunk once a label is used, and with timing 24 a chunk and 24 a queued
// free.
//
// # Invariants
//
// Invariant B1: regions are disjoint and listed by address; all sizes and addresses are multiples
// of 256.
// Invariant B2: the chunks from first to last tile their region, and prev mirrors next.
// Invariant B3: each free chunk is exactly once in the bin of its size and owner; the bins hold
// nothing else.
// Invariant B4: of two adjacent chunks at most one is free; with timing and mended, one of two free
// ones is queued.
// Invariant B5: the requested bytes of a live chunk are from 1 to its size.
// Invariant B6: a live chunk has a remainder beyond the rounded request that the rule for splits
// leaves in place.
// Invariant B7: the counters of Stats and of regions equal what Walk shows, and no peak is below
// its value.
// Invariant B8: the address index holds exactly the starts of live chunks.
// Invariant B9: every handle is of a chunk of a region or retired.
// Invariant B10: in a two-ended arena a region has lower chunks first, then the gap, then upper
// chunks.
// Invariant B11: a live chunk has no count, and mended, every unsafe chunk is queued.
// Invariant B12: after all blocks are freed, without timing, each region is one free chunk.
// Invariant B13: the same configuration, answers of the device and calls give the same addresses.
//
// With timing the original does not keep B4: a merge absorbs one neighbour on each side, so
// of four chunks in a row that become safe at once one is left apart, and a forced merge
// that stops early leaves safe neighbours which the next request may split.
//
// # Variants
//
// [V2024] is described above. [V2026] honours alignments above 256 and has two-ended arenas.
// [V2016] begins growth with 1 MiB instead of 2, splits only at twice the request, asks for whole
// regions although the limit leaves less, and asks for less than that in one failed reservation of
// its life only, in which it records one step less than it got; the rest shows as Forgotten in
// [alloc.Stats]. It has none of the options, and its statistics cannot be reset.
//
// # Departures
//
// In every variant:
//
//   - a backpedal that cannot shrink the size goes down by 256 bytes, as in 2026; before, it never
//     ended;
//   - NextRegion stops at the largest multiple of 256 instead of wrapping to zero;
//   - a size that overflows when rounded is refused, where the original corrupts itself;
//   - a free of anything but the start of a live block is refused, where the original aborts, or
//     accepts an address in a block's first 256 bytes;
//   - an alignment above 256 is refused by the variants of 2016 and 2024, which ignore it;
//   - a trim, which the originals lack, restarts growth if it leaves no region; otherwise the
//     variant of 2016 would request ever larger regions and refuse requests on an empty device;
//   - the release of a region removes its chunks from the timestamp queue;
//   - a region that the device does not take back stays, in whole or in part;
//   - a waste limit of zero splits off no empty remainder;
//   - in a two-ended arena each region has its own gap, which absorbs adjacent free chunks, and
//     regions are never joined; a second gap aborts the original;
//   - fragmentation is 0, not NaN, without free bytes;
//   - regions are always aligned to at least 256 bytes.
//
// With Mended also:
//
//   - the room below the limit stops at zero when the device granted more than requested; unmended
//     it wraps, which disables the limit;
//   - the remainder of a split unsafe chunk is queued, and so is one next to a free chunk; unmended
//     it stays unmerged until it is granted whole or merged by force;
//   - a merge continues until no neighbour can be merged; unmended it takes one on each side;
//   - the result of a forced merge is queued while it is unsafe, and an unsafe gap stays queued.
//
// # Source
//
// tensorflow/core/common_runtime/bfc_allocator.cc (2016), tsl/framework/bfc_allocator.cc
// (2024) and xla/tsl/framework/bfc_allocator.cc (2026), Apache License 2.0, reproduced in
// behaviour and not in text. Best fit with coalescing goes back to Doug Lea's malloc.
package bfc
