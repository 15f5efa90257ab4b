// Package vmm grants blocks in a range of addresses that has memory only where it is wanted: it
// grows by mapping pages and shrinks by unmapping them. Above the pages lies a best fit, or a
// first fit, that merges at once.
//
// # Data structure
//
// A range of addresses is reserved with the first request, by default for nine eighths of
// the memory there is, and another one when a request finds no room in those there are. Chunks
// tile it, in a table with boundary tags: free and live ones have memory, unmapped ones have none
// and are whole pages. A page is one piece of physical memory. The free chunks are ordered by size
// and address in kit/index, or, for the first fit, by address in kit/index with a
// bound on the sizes in each leaf; the unmapped ones by address.
//
// # Search
//
// A request gets the smallest free chunk that fits, the lowest of equals; with Config.Fit at
// [FitFirst] the lowest one. If none fits, memory is mapped at the place with the fewest missing
// pages, the lowest of equals. In a run of free and unmapped chunks such a place begins or ends
// where a free chunk does, or begins with the run, so only these are measured. A hole that is
// mostly mapped is completed. The end of the range is used only if it needs less than half the
// pages of any hole, because a free part of a page mostly precedes it: without this rule a queue of
// blocks walked through 18 GiB of addresses with 8 GiB live, with it through 15.
//
// # Pages come and go
//
// A page is created and mapped, and the pages of a hole are made accessible together. Freed memory
// stays mapped. It is released when the limit or the device leaves no room for a request (then all
// whole free pages are released and the request is retried once), by Trim, and with Config.Release
// as soon as more than Config.KeepBytes are free (then the whole pages of the chunk just freed).
// Pages need not be physically adjacent, so every free page is usable: only parts of pages and
// addresses are lost to fragmentation, and addresses are plentiful. Trim also releases ranges
// without memory.
//
// # When the device refuses
//
// Every call may fail, and nothing is lost. Pages that were created and could not be mapped, and
// pages that were unmapped and could not be released, are idle: the next page to map is one of
// them, else they are released when memory goes back. Stats counts them as Forgotten. Memory that
// was mapped and could be neither opened nor unmapped is a stuck chunk, which Walk shows as slack.
// Memory that cannot be unmapped stays free. All of it is tried again by Trim and Close.
//
// # Limit
//
// Pages held are never more than Config.Limit, by default what the device says it has when the
// allocator is made. So a request that cannot be served is refused without a call to the device
// unless pages could go back for it.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log chunks of one size), for the first fit a look at the
// leaves that may have a chunk so large. Mapping looks at every unmapped chunk and what follows it
// as far as the request is large, and makes two calls for each page and one more; unmapping makes
// one call, and one for each page. An alignment above the quantum passes over chunks that are large
// enough but misplaced. Nothing is allocated on the heap once warm.
//
// # Invariants
//
// Invariant V1: the chunks of a range tile it; links to both neighbors are exact.
// Invariant V2: no two adjacent chunks are both free, both unmapped or both stuck.
// Invariant V3: the recorded pages cover exactly the chunks that are not unmapped.
// Invariant V4: the map from addresses holds exactly the live chunks.
// Invariant V5: the index holds exactly the free chunks, under their size and address.
// Invariant V6: the gap list holds exactly the unmapped chunks.
// Invariant V7: every row is a chunk of a range or spare.
// Invariant V8: the counters match the walk; the bytes held are the recorded and idle pages.
// Invariant V9: the requested bytes of a live chunk are from 1 to its size.
//
// # Source and departures
//
// PyTorch's expandable segments (c10/cuda/CUDACachingAllocator.cpp, ExpandableSegment), and the
// virtual memory management of the CUDA driver, from where the order of calls comes. PyTorch keeps
// a segment for each stream and for small and large blocks, with pages of 2 and 20 MiB; it maps at
// the first place that is large enough and not where the least is missing. Here one range serves
// all.
package vmm
