// Package textbook is TensorFlow's best-fit allocator with coalescing in its literal structure, to
// be read beside docs/strategies/bfc.md. It places every block where package bfc does, with the
// data structures and function names of the original instead of faster ones. Read textbook.go from
// the top, then region.go.
//
// # Data structures
//
// A region is a range of device memory from one reservation. Chunks tile it: each is free or in
// use. A chunk's record lies in one slice for all chunks, and its index there is the chunk's
// handle. Each record has the handles of the adjacent chunks, prev and next.
//
// A bin is a set of free chunks, ordered by size, then address. There are 21. Bin b holds chunks
// from 256<<b bytes up to the start of the next bin; the last starts at 256 MiB and has no end.
//
// A region has an array with one handle for every 256 bytes. The entry of the first 256 bytes of a
// chunk is the chunk's handle, and the other entries are empty. Free finds its chunk there.
//
// # Alloc
//
// Alloc rounds the size up to a multiple of 256 and takes the smallest free chunk that is large
// enough, the lowest among equals. It tries the chunks of that size's bin in order, then the next
// bins (findChunkPtr). The chunk is split if the remainder is at least the rounded size or at least
// 128 MiB (splitChunk). A smaller remainder stays with the block. If no chunk is large enough, the
// allocator takes a region from the device and searches again (extend).
//
// # Free
//
// The chunk becomes free. It merges with the next chunk and then with the previous one, if they are
// free (tryToCoalesce). The result goes into the bin of its size.
//
// # Cost
//
// A request visits each chunk of the first bin that is too small for it. Adding a chunk to a bin or
// removing one finds its place by binary search and moves the handles after it. Metadata is 64
// bytes a chunk, 4 bytes a free chunk in its bin, and the arrays of handles.
//
// The original fills the array when it makes a region: 8 bytes for every 256, which is 2.5 GiB of
// host memory for 80 GiB. Here an entry takes 4 bytes, and the array is made in pages for 2 MiB of
// device memory, each when its first entry is used.
//
// # Invariants
//
// Invariant X1: the chunks from the start of a region along next tile it, and the counters of Stats
// match them.
// Invariant X2: prev mirrors next, and of two adjacent chunks one is in use.
// Invariant X3: the array of a region has the handle of each chunk.
// Invariant X4: a free chunk is at its place in the bin of its size, and the bins have no other
// entries.
// Invariant X5: the remainder that a chunk in use has beyond the rounded size is smaller than that
// size and than 128 MiB.
// Invariant X6: each record has a chunk or is in the list of unused ones.
//
// # Left out
//
// Package bfc has these parts of the original, and this package has not: garbage collection,
// timestamps and the safe frontier, the setting that replaces the 128 MiB, regions that join,
// alignments above 256, two-ended arenas, the memory map and the out-of-memory report, and the
// rules of other years. AllocatorRetry is wrap.Retrying. A trim is refused, because without garbage
// collection the original never releases a region.
//
// # Departures
//
//   - the handle of no chunk is 0, not the largest number, so that arrays need not be filled;
//   - a free of anything but the start of a chunk in use is refused, where the original aborts or
//     frees another chunk;
//   - a size that overflows when rounded is refused, and so is an alignment above 256, which the
//     original ignores;
//   - a backpedal that cannot shrink the size goes down by 256 bytes, where the original asks for
//     the same size forever;
//   - the planned size of a region stops at the largest multiple of 256, where the original wraps.
//
// # Source
//
// tsl/framework/bfc_allocator.h and bfc_allocator.cc (2024, TensorFlow 2.17), Apache License 2.0,
// reproduced in structure and behaviour and not in text.
package textbook
