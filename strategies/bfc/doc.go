// Package bfc places blocks by best fit with coalescing, as TensorFlow and XLA do.
//
// The allocator takes a few large regions from the device, cuts them into chunks, hands
// out the smallest free chunk that is large enough and splits off what is too much to
// waste. A freed chunk merges with its free neighbours. Sizes and addresses are multiples
// of 256 bytes. Placement, region sizes, statistics and the order in which handles are
// used again are those of the original, bit for bit, for three states of it: see [Variant].
//
// # Data structures
//
// Chunks are 32-byte records in one table and name each other by index, their handle: the
// physical neighbours of a chunk are its prev and next. What only some runs need (counts
// of frees, labels, very large slack) lies in columns beside the table that exist only
// then. Retired handles are used again, newest first.
//
// Bins hold the free chunks, ordered by size, then address. Bin b starts at 256 B << b; the
// 21st, from 256 MiB, is open-ended. Bins never overlap in size, so one order over all of them
// (kit/index) is the same, and a chunk's bin is arithmetic. A free chunk knows its
// name there, so that it is taken out without a search.
//
// Regions lie in a table of their own with a list in address order. Each counts its live
// chunks, knows its first and last chunk and the reservations it was joined from.
//
// The address index (kit/index) maps the start of each live chunk to its handle. It
// is the one way in from outside, so a free of any other address is refused.
//
// # Search
//
// A request is rounded up to 256 bytes and gets the smallest free chunk that is large
// enough, among equals the one at the lowest address. A request with a bound on the count
// passes over chunks freed after it; one with an alignment above 256, which only the
// variant of 2026 knows, passes over chunks without an aligned place. If nothing fits, a
// new region is taken; then unsafe chunks are merged by force; then, as a last resort and
// if garbage collection is on, all regions without a live block go back to the device and
// a new one is taken.
//
// A new region has the size that [alloc.Stats] shows as NextRegion, doubled until the
// request fits, clipped to what the limit leaves. It doubles once more after each region. Where
// the device refuses, nine tenths of the size are asked for, and nine tenths of that,
// until it grants or the request would not fit.
//
// # Split and merge
//
// A chunk is split if the remainder is at least as large as the rounded request, or larger
// than a block may waste: 128 MiB, or a share of the limit. Anything less is granted with
// the block. A free merges with the next chunk, then with the previous one.
//
// # Timestamps
//
// With timing each free takes the next count and the freed chunk is unsafe: it can be
// granted, but is not merged until the safe frontier has passed its count. It waits in a
// queue that the next Alloc sweeps: it drops chunks granted meanwhile, and merges those
// that the frontier has passed.
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
// Alloc and Free cost O(1), but for the shares of a heap (see kit/index) O(log chunks of
// one size) amortized, and allocate nothing once the tables have grown. A request that fails costs
// no more, whatever is free where. Exceptions: a bound on the count or an alignment above 256 walks
// the chunks it passes over; a new region moves the list of regions. A sweep costs what it merges,
// once for each free; a forced one looks at the whole queue. Metadata is 32 bytes a chunk, 9 to 14
// a live chunk in the index, about 32 a free chunk in the bins, 16 a chunk once a label is used,
// and with timing 24 a chunk and 24 a queued free.
//
// # Invariants
//
// Invariant B1: regions are disjoint and listed by address; all sizes and addresses are multiples
// of 256. Invariant B2: the chunks from first to last tile their region, and prev mirrors next.
// Invariant B3: each free chunk is in exactly one bin, that of its size and owner, and nothing else
// is in any. Invariant B4: of two neighbours at most one is free; with timing, and mended, one of
// two free ones is queued. Invariant B5: the bytes requested of a live chunk are at least one and
// at most its size. Invariant B6: a live chunk has a remainder beyond the rounded request that the
// rule for splits leaves in place. Invariant B7: the counters of Stats and of regions equal what
// Walk shows, and no peak is below its value. Invariant B8: the address index holds exactly the
// starts of live chunks. Invariant B9: every handle names a chunk of some region or is in the list
// of retired ones. Invariant B10: in a two-ended arena a region has lower chunks first, then the
// gap, then upper chunks. Invariant B11: a live chunk has no count, and mended, every unsafe chunk
// is queued. Invariant B12: after all blocks are freed, without timing, each region is one free
// chunk. Invariant B13: the same configuration, answers of the device and calls give the same
// addresses.
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
//   - the backpedal that cannot shrink a size any more goes down by 256 bytes, as in 2026;
//     before, it never ended;
//   - NextRegion stops at the largest multiple of 256 instead of wrapping to zero;
//   - a size that overflows when rounded is refused, where the original corrupts itself;
//   - a free of anything but the start of a live block is refused, where the original
//     aborts, or accepts what lies in a block's first 256 bytes;
//   - an alignment above 256 is refused by the variants of 2016 and 2024, which ignore it;
//   - a trim, which the originals lack, starts growth anew if it leaves no region; before, the
//     variant of 2016 asked for ever larger regions and refused what an empty device could serve;
//   - a region that goes back takes its chunks out of the timestamp queue;
//   - a region that the device does not take back stays, as a whole or what is left of it;
//   - a waste limit of zero splits off no empty remainder;
//   - in a two-ended arena each region has a gap of its own, which merges with whatever falls
//     back to it, and regions are never joined; a second gap aborts the original;
//   - fragmentation is 0, not NaN, where nothing is free;
//   - the device is always asked for at least 256-byte alignment.
//
// With Mended also:
//
//   - the room below the limit stops at zero when the device gave more than was asked;
//     before, it wraps and the limit is gone;
//   - the remainder of a split unsafe chunk is queued, and so is one next to a free chunk;
//     before, it stays unmerged until it is granted whole or merged by force;
//   - a merge goes on until no neighbour may be merged; before, it takes one on each side;
//   - the result of a forced merge is queued while it is unsafe, wherever it starts, and a
//     gap that is unsafe stays queued.
//
// # Source
//
// tensorflow/core/common_runtime/bfc_allocator.cc (2016), tsl/framework/bfc_allocator.cc
// (2024) and xla/tsl/framework/bfc_allocator.cc (2026), Apache License 2.0, reproduced in
// behaviour and not in text. Best fit with coalescing goes back to Doug Lea's malloc.
package bfc
