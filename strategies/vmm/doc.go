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
// A request gets the smallest free chunk that serves, the lowest among equals; with Config.Fit at
// [FitFirst] the lowest one. If none serves, memory is mapped where the fewest pages are missing,
// the lowest place among equals. In a row of free and unmapped chunks that is a place that begins
// or ends where a free chunk does, or begins with the row, so those are measured. Where most of a
// hole has memory it is completed. The end of the range is taken only if it needs less than half
// the pages of any hole, because there mostly is a part of a page free before it: without that rule
// a queue of blocks walked through 18 GiB of addresses with 8 GiB live, with it through 15.
//
// # Pages come and go
//
// A page is created, mapped, and opened together with the others of its hole. What is freed
// stays mapped: memory goes back when the limit or the device leaves no room for a request
// (then all whole free pages do, and the request is tried once more), by Trim, and with
// Config.Release as soon as more than Config.KeepBytes are free (then the whole pages of the chunk
// that was just freed). Pages need not lie together physically, so no free page is ever out of
// reach of a request: what is lost to fragmentation are parts of pages, and addresses, of which
// there are plenty. Trim gives ranges without memory back too.
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
// Invariant V1: the chunks of a range tile it; each names the one before and the one behind it.
// Invariant V2: no two neighbours are both free, both unmapped or both stuck.
// Invariant V3: pages are noted exactly where chunks are not unmapped, at multiples of the page.
// Invariant V4: the map from addresses holds exactly the live chunks.
// Invariant V5: the index of free chunks holds exactly those, under their size and address.
// Invariant V6: the list of unmapped chunks holds exactly those.
// Invariant V7: every row is a chunk of a range or waits to be used again.
// Invariant V8: the counters are what the walk shows; bytes held are those of noted and idle pages.
// Invariant V9: a live chunk was requested with at least one byte and at most its size.
//
// # Source and departures
//
// PyTorch's expandable segments (c10/cuda/CUDACachingAllocator.cpp, ExpandableSegment), and the
// virtual memory management of the CUDA driver, from where the order of calls comes. PyTorch keeps
// a segment for each stream and for small and large blocks, with pages of 2 and 20 MiB; it maps at
// the first place that is large enough and not where the least is missing. Here one range serves
// all.
package vmm
