// Package stitch joins scattered memory under one range of addresses, in the manner of GMLake. It
// needs a device with virtual memory.
//
// # What is different
//
// Free memory that lies in pieces cannot serve a request that is larger than each of them.
// Elsewhere such a request gets new memory. Here the pieces are mapped a second time, one behind
// the other, into a range of their own, and the request gets that. So memory is asked for only when
// less is free than is wanted.
//
// # Words of the paper
//
// Memory is created and mapped in pages of Config.ChunkBytes, the chunks of the paper. A segment
// is a range with memory of its own, in which each page is mapped once. A pBlock is a part of a
// segment: the paper's primitive block. An sBlock, for stitched, is a range onto which pages of
// several pBlocks are mapped a second time; a piece of it is successive pages of one segment.
//
// # Data structure
//
// The chunks of all regions lie in one table, linked with their neighbors in the region: parts of
// the small pool, pBlocks, and one chunk for each sBlock. A segment has its handles and, for each
// page, the pBlock that it belongs to. An sBlock has a list of pieces, and a segment has the list
// of all pieces over it: before its pages are released, the sBlocks over them are undone.
//
// Free chunks of the small pool, free pBlocks, and idle sBlocks are each ordered by size and
// address in an kit/index. The live blocks stand in an kit/front.
//
// An idle sBlock does not own its memory. Its pages are in pBlocks that are free, or in use by
// others, and it may be granted only if all are free. Nobody counts that. An sBlock that turns out
// to be blocked when it is looked at leaves the map and waits in a list of one of the pBlocks in
// its way; when that is freed it is in the map again. So a free costs nothing for sBlocks that are
// not waiting, and a blocked one costs nothing until something has changed.
//
// # Search
//
// A request of at least a page is rounded up to whole pages and gets the first that there is of
// (with the states of the paper's best fit):
//
//	a free pBlock of that size, or an idle sBlock of that size whose pages are all free   S1
//	the first part of the smallest larger pBlock                                          S2
//	free pBlocks, stitched                                                                S3
//	the same, after a segment was added with what is missing                              S4
//	what is free after free memory went back to the device; else nothing                  S5
//
// Of pBlocks to stitch the largest are taken until one has what is still missing, of those the
// smallest: as few pieces as can be. A request below Config.FragLimit is not stitched, nor one when
// Config.MostSBlocks are in use; it gets a segment of its own.
//
// A request below a page goes to the small pool, a best fit over regions of Config.SmallBytes, or
// in need of a page.
//
// # Split and merge
//
// A pBlock is cut where a request ends, and a freed one merges with its free neighbours in the
// segment, at once. Neither calls the device: the pages stay where they are. An sBlock is never
// cut. When it is freed its pBlocks become free and merge, and it stays, idle, for the next request
// of its size: training repeats itself, and so the same sizes are stitched once. Of more than
// Config.MostSBlocks the idle one freed longest ago is given up, which the paper calls StitchFree.
//
// # Memory that goes back
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
// Every byte of memory once. In use through an sBlock it is in the live chunk of that, and its
// pBlocks are aliased. Otherwise its pBlock shows what it is, and the range of the sBlock is
// aliased. The largest hole is the largest free chunk, as everywhere, though stitching may serve a
// request of all free pages together.
//
// # Cost
//
// A pBlock is found in O(log n), an sBlock in O(log n) and a look at each of its pBlocks. Cutting
// and merging write four bytes for each page of the smaller part. To stitch takes a call for each
// page, two more, and O(log n) for each piece; a segment takes two for each page and two more. So a
// request is bounded by 16,384 pages.
//
// # Invariants
//
// Invariant G1: chunks tile their region, links mirror, and the pages of a pBlock name it.
// Invariant G2: the maps hold exactly the free chunks, under their size and address, and their
// bytes are counted. Invariant G3: no two free chunks are neighbours. Invariant G4: pieces lie in
// segments and have memory, make up their sBlock, and their lists mirror. Invariant G5: the pieces
// of an sBlock in use are pBlocks that are held, and no other pBlock is. Invariant G6: an idle
// sBlock is in the map, or waits for a pBlock in use that has pages of it; there are at most
// MostSBlocks. Invariant G7: every row of a table is in use or spare. Invariant G8: the ledger
// holds exactly the live chunks. Invariant G9: the counters match the walk.
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
//     splits the smallest one that suffices for the rest.
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
