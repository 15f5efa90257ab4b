// Package stitch joins scattered memory under one range of addresses, in the manner of GMLake. It
// needs a device with virtual memory.
//
// # The idea
//
// A request that is larger than every free chunk normally takes new memory, even if the free chunks
// together would suffice. Here the pages of several free chunks are mapped a second time, one after
// the other, into a new range of addresses, and the request gets that range. New memory is needed
// only if all free pages together are too few.
//
// # Terms of the paper
//
// Memory is created and mapped in pages of Config.ChunkBytes; the paper calls them chunks. A
// segment is a range with memory of its own, in which each page is mapped once. A pBlock (primitive
// block) is a part of a segment. An sBlock (stitched block) is a range into which pages of several
// pBlocks are mapped a second time. It consists of pieces: each is a run of pages of one segment.
//
// # Data structure
//
// One table holds the chunks of all regions: parts of the small pool, pBlocks, and one chunk for
// each sBlock. Each is linked with the adjacent chunks of its region. A segment has the handle of
// each page and the pBlock that each page belongs to. An sBlock has a list of its pieces, and a
// segment has a list of all pieces over it, because the sBlocks over a page must be undone before
// the page is released.
//
// The free chunks of the small pool, the free pBlocks and the idle sBlocks are each ordered by size
// and address in kit/index. The live blocks are in a ledger of kit/front.
//
// An idle sBlock does not own its memory: its pages are in pBlocks that may be free or in use, and
// it can be granted only if all of them are free. No counter tracks that. If a search finds that an
// sBlock is blocked, the sBlock leaves the map and waits in a list of one pBlock that blocks it.
// When that pBlock is freed, the sBlock returns to the map. So an sBlock costs nothing while
// nothing changes, and a free costs nothing for sBlocks that do not wait for it.
//
// # Search
//
// A request of at least a page is rounded up to whole pages. It gets the first of these, with the
// names of the states in the paper's best fit:
//
//	a free pBlock of that size, or an idle sBlock of that size whose pages are all free   S1
//	the first part of the smallest larger pBlock                                          S2
//	an sBlock of free pBlocks                                                             S3
//	the same, after a segment was reserved for the missing bytes                          S4
//	one of these after free memory was released; otherwise the request fails              S5
//
// For an sBlock, the largest pBlocks are taken until one of the rest has the missing bytes; of
// those, the smallest is taken. This gives the fewest pieces. A request below Config.FragLimit is
// not stitched, and neither is one while Config.MostSBlocks are in use. It gets a segment of its
// own.
//
// A request below a page is served by the small pool: a best fit over regions of Config.SmallBytes,
// or of one page when memory is short.
//
// # Split and merge
//
// A pBlock is split where a request ends. A freed pBlock merges with the free pBlocks before and
// after it in the segment at once. Neither calls the device, because the pages stay mapped. An
// sBlock is never split. When it is freed, its pBlocks become free and merge, and the sBlock stays
// idle for the next request of its size: training repeats its sizes, so each is stitched once. If
// there are more than Config.MostSBlocks, the sBlock that has been idle longest is undone; the
// paper calls this StitchFree.
//
// # Release
//
// Free makes no device call. Trim undoes idle sBlocks and unmaps free pages. The range of a segment
// stays until all its pages are released, and released pages are not mapped again. After a refusal
// by the device, enough free pages and regions are released for the request, and it is retried. No
// alias outlives its memory.
//
// The device may refuse any call. An sBlock or a segment is granted only after it is mapped and
// accessible; after a refusal the steps done are undone. If the device refuses that too, the region
// stays in the walk and is retried whenever memory is released.
//
// # What a walk shows
//
// A walk shows every byte of memory once. Memory that is in use through an sBlock is in the live
// chunk of the sBlock, and the pBlocks are aliased. Otherwise the pBlocks show the state of the
// memory, and the range of the sBlock is aliased. The largest hole is the largest free chunk, as in
// every strategy, although stitching may serve a request for all free pages together.
//
// # Cost
//
// Finding a pBlock costs O(log n), finding an sBlock O(log n) and a visit to each of its pBlocks. A
// split or merge writes four bytes for each page of the smaller part. Stitching makes a device call
// for each page and two more, and costs O(log n) for each piece. A segment takes two calls for each
// page and two more. A request therefore has at most 16,384 pages.
//
// # Invariants
//
// Invariant G1: chunks tile their region, links mirror, and the pages of a pBlock name it.
// Invariant G2: the maps hold exactly the free chunks, under their size and address, and the
// counted bytes are exact.
// Invariant G3: no two adjacent chunks are free.
// Invariant G4: pieces lie in segments and have memory, the pieces of an sBlock fill its range, and
// the links of their lists mirror.
// Invariant G5: the pieces of an sBlock in use are pBlocks in state held, and no other pBlock is.
// Invariant G6: an idle sBlock is in the map, or waits for a pBlock in use that has pages of it;
// there are at most MostSBlocks.
// Invariant G7: every row of a table is in use or spare.
// Invariant G8: the ledger holds exactly the live chunks.
// Invariant G9: the counters match the walk.
//
// # Source and departures
//
// Guo and others, GMLake: Efficient and Transparent GPU Memory Defragmentation for Large-scale DNN
// Training with Virtual Memory Stitching, ASPLOS 2024 (arXiv 2401.08156), and its code in the
// directory GMLake of github.com/intelligent-machine-learning/glake, file
// src/CUDACachingAllocator.cpp: get_free_block, get_fused_fragmented_blocks and realloc_block. We
// read the code. The states and rules of the paper come from secondary sources, so read "the paper"
// below with caution. The differences:
//
//   - The code prefers a larger pBlock to an sBlock of the right size. The paper and this package
//     prefer an exact fit.
//   - The code takes the largest pBlocks until it has enough and splits the last one. This package
//     splits the smallest pBlock that suffices for the rest.
//   - The code grants an sBlock of up to reuseLimit, ten, times the request, and splits surplus
//     pBlocks. The paper and this package grant an sBlock of the exact size only.
//   - If too little is free, the code creates memory for the whole request, unless reAlloc is set.
//     The paper and this package create only the missing part.
//   - The code limits sBlocks by the total size of their ranges, autoGC GiB, this package by their
//     number.
//   - The code counts the free pages of each sBlock, at a step for each page and each sBlock over
//     it in every allocation and free. Here sBlocks wait in lists.
//   - The code rounds segments below 10 MiB up to 20 MiB, because it does not stitch small requests
//     by default. Here no segment is larger than the request.
//   - The code separates memory by stream. Here a freed block is usable by every stream, as in
//     every strategy without streams.
//   - The code serves requests of up to 1 MiB from its small pool, the paper and this package
//     requests below a page.
package stitch
