// Package vmm grants blocks in a range of addresses that is backed by memory only in part: it grows
// by mapping pages and shrinks by unmapping them. Above the pages lies a best fit, or a first fit,
// that coalesces at once.
//
// # Data structure
//
// The first request reserves a range of addresses, by default nine eighths of Config.Limit. Another
// range is reserved when a request finds no room. Chunks tile a range, in a table with links to the
// adjacent chunks. Free and live chunks have memory; unmapped chunks have none and are whole pages.
// A page is one piece of physical memory. The free chunks are ordered in kit/index: by size and
// address for the best fit, by address for the first fit, where each leaf has a bound on the sizes
// in it. The unmapped chunks are ordered by address.
//
// # Search
//
// A request gets the smallest free chunk that fits, the lowest of equals; with Config.Fit at
// [FitFirst] the lowest free chunk that fits. If none fits, memory is mapped at the place with the
// fewest missing pages, the lowest of equals. In a run of adjacent free and unmapped chunks such a
// place begins or ends at the border of a free chunk, or begins with the run, so only these places
// are measured. A hole that is mostly mapped is thus completed. The end of the range is used only
// if it needs less than half the pages of any hole, because it mostly begins with a free part of a
// page: without this rule a queue of blocks walked through 18 GiB of addresses with 8 GiB live,
// with it through 15.
//
// # Mapping and unmapping
//
// Pages are created and mapped one by one, and the pages of a hole are made accessible together.
// Freed memory stays mapped. It is released in three cases:
//
//   - the limit or the device leaves no room for a request: all whole free pages are released, and
//     the request is retried once;
//   - by Trim, which also releases ranges without memory;
//   - with Config.Release, as soon as more than Config.KeepBytes are free: the whole pages of the
//     chunk that was just freed.
//
// Pages need not be physically adjacent, so every free page is usable. Fragmentation costs parts of
// pages and addresses only, and addresses are plentiful.
//
// # When the device refuses
//
// Every call may fail, and no memory is lost. Pages that were created and could not be mapped, and
// pages that were unmapped and could not be released, are idle. The next pages to map are taken
// from them, and otherwise they are released when memory is released. Stats counts them as
// Forgotten. Memory that was mapped and could be neither made accessible nor unmapped is a stuck
// chunk, which Walk shows as slack. Memory that cannot be unmapped stays free. Trim and Close retry
// all of it.
//
// # Limit
//
// The bytes of the pages held are never above Config.Limit, by default the capacity that the device
// reports when the allocator is made. A request beyond it is refused without a device call, unless
// pages could be released for it.
//
// # Cost
//
// Alloc and Free cost O(1), amortized O(log chunks of one size); the first fit visits the leaves
// whose bound is large enough. Mapping visits every unmapped chunk and the chunks after it up to
// the size of the request, and makes two device calls for each page and one more. Unmapping makes
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
// virtual memory management of the CUDA driver, which prescribes the order of calls. PyTorch has
// separate segments for each stream and for small and large blocks, with pages of 2 and 20 MiB, and
// it maps at the first place that is large enough. Here one range serves all requests, and memory
// is mapped where the fewest pages are missing.
package vmm
