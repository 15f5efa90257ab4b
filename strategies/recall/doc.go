// Package recall is a best fit that recognizes a period of the run, such as a training step, and
// places the blocks of the next one by a plan. It needs no profile and no marks, and over a range
// (Config.Map) no virtual memory. Over pages it works without a plan: blocks get the places of an
// earlier repetition, and idle memory is mapped at further addresses. Pages are described below.
//
// # Data structure
//
// One region of strategies/bestfit holds all blocks. The watch remembers the last Config.Memory
// allocations as entries: size, token, time of the free, and the earlier entry that it repeats, its
// twin. A token is a hash of the frees since the previous allocation, by the ages of the freed
// blocks, and of the order of the two sizes. So it describes structure, and is the same for another
// batch size. A hash table finds the last entry with the same 12 tokens.
//
// # Watch
//
// A pointer into the past moves on with each allocation: to the entry that the new one repeats. If
// size and token differ, the next 3 entries are tried, which skips missing allocations. An
// additional allocation leaves the pointer in place. From the second miss in a row on, the place is
// taken at which most of the last 8 allocations agree, up to 4 entries further for each miss. The
// place is lost after up to 24 misses in a row, after fewer if it was found recently. After a miss,
// without a place, and while a match is young, up to 64 earlier contexts are compared, and the
// longest match is followed.
//
// # Tides and eras
//
// A period ends at a low tide of the live bytes: after a fall that is large in comparison with the
// falls before it. An era is a stretch without a change of shapes. In a new era the first blocks
// predict the others: sizes with the same history had the same ratio, or a power of it. A size is
// predicted while at most a fifth of the blocks with its history contradict it.
//
// # Forecast
//
// After a low tide, and once the place is certain, the entries after the pointer are the forecast:
// births, deaths and sizes up to the next low tide. The forecast is dropped if the distance is no
// period, if the live bytes drift, or if too many sizes are unknown.
//
// # Plan
//
// The forecast runs through a copy of the fallback. If that stays within the used bytes, there is
// no plan. Otherwise the blocks are packed by kit/packing around the live ones, in six orders of
// ten rounds each, three of them with the lowest limits first; after a round the blocks that
// exceed their limit move to the front. The plan is dropped if more than a thirtieth of it exceeds
// the limits, or if it saves too little: a percent of the peak, or six times the part of the last
// period's allocations that deviated, not counting six of them. Each of the last seven plans that
// were given up without a change of shapes adds as much, until a plan is kept to its end.
//
// A block whose twin has a place gets it, if the bytes are free and the guard permits it. Another
// one gets the smallest hole that the plan does not use during the expected life, or a best fit. If
// such blocks exceed a thirtieth of the most live bytes, the plan is given up, and the rest of the
// period is planned again. Each later period gets the places of the one before it, without another
// plan, until shapes change.
//
// # Guard
//
// A block at a planned place ends at most at the larger of two offsets: the end of the highest
// block so far; and Config.Guard percent above the highest end that the fallback by itself would
// have had by then, this request included. The second is no estimate. From a plan on, a shadow
// without memory runs the fallback by itself. It ends when every live block lies where the fallback
// would have it; until then blocks without a plan go to that place if it is free. While the used
// bytes exceed the guard, no plan is made.
//
// The guard does not bound blocks outside of a plan. They go to the best fit among the holes that
// are left, so the used bytes can exceed the bound.
//
// # Cost
//
// Without a plan, Alloc and Free cost a best fit and O(1) for the watch. Once in 16 allocations a
// search examines at most 64 matches. It compares one token of each match that differs at the
// length that it needs, and at most 4,096 of another. While the shadow lives, there are two best
// fits. A planned place costs O(log free chunks), a block outside of the plan O(p log p + free
// chunks), where p is the allocations of a period. A period has at most 8 forecasts, and a few more
// after a plan was given up. A forecast costs O(p + live blocks), whether a plan follows or not,
// and the packings of a plan together 2,048 steps for each allocation so far.
//
// The worst case is linear in the live blocks: a period has at least 32 allocations, so forecasts
// visit about a quarter of the live blocks for each allocation. After 16 forecasts in vain they
// become rare, as long as neither the shapes nor the used bytes change.
//
// # Pages: idea
//
// A request that fits into no free chunk normally takes new memory, even if the free chunks
// together would suffice. A stitching allocator maps the pages of several free chunks into a new
// range for it, one device call for each page. Here memory is mapped in handles of many pages,
// blocks of any size share them, new memory comes first while the forecast says that it will be
// needed anyway, and a block gets the place that it had in the repetition before. So a program that
// repeats itself makes no device calls any more, and one whose sizes change makes few.
//
// # Pages: data structure
//
// A handle is a piece of physical memory: some pages of Config.PageBytes. A window is a range of
// addresses into which handles are mapped, one behind the other. Each mapping is a slot. A home
// window has the first mapping of each handle, an alias window has second ones. A window maps a
// handle at most once, so that no block contains the same memory twice.
//
// Memory is in use through a slot if a live block overlaps the slot. It is idle if it is in use
// through no slot. While it is in use through one, its other slots are blocked.
//
// Chunks tile the mapped part of each window: live blocks, free chunks, blocked slots, and gaps
// whose memory was released. A slot counts the live chunks that overlap it and names the chunk with
// its first byte. A handle names its slots, and the one through which it is in use. Free chunks are
// ordered by size and address in kit/index, home windows apart from alias windows.
// Blocked slots are in no map. The live blocks are in a ledger of kit/front.
//
// # Pages: search
//
// A request gets the first of these:
//
//	the place of its counterpart, if it is free
//	the first part of the smallest free chunk with room in a home window
//	the same in an alias window
//	the end of a home window, which grows: as long as the bytes held stay within the budget
//	the end of an alias window, at which idle handles are mapped, and new ones for the missing part
//
// Aliases come last because each block in an alias window blocks slots elsewhere, which cuts free
// chunks there.
//
// The budget is the demand of an allocator of whole pages at its highest, so far or in the
// forecast, and slackOfBudget more. Of the alias windows that one is chosen that takes the least
// new memory, then the fewest calls. Idle handles are taken from the largest down, so that there
// are few.
//
// # Pages: counterpart and forecast
//
// This watch keeps a log of the last Config.Memory blocks of at least a sixteenth of a page. The
// counterpart of an allocation is the one at the same position of an earlier repetition. It is
// found by following the log; after a mismatch by the size together with the live bytes, which are
// equal in an exact repetition; and otherwise by structure: whether each size is larger or smaller
// than the one before it, and how old the blocks are that are freed in between. Sizes differ
// between batches of different lengths, structure does not.
//
// The forecast is the peak behind the counterpart, scaled by the ratio of the live bytes, both
// above the valley in between. Without a valley nothing is forecast.
//
// # Pages: size of handles
//
// Small handles share well: memory that is partly in use cannot be aliased. Large ones take few
// calls. A handle has up to ten pages until the live bytes have risen twice from a valley, and up
// to 24 pages later, but at least a 64th of the request.
//
// # Pages: release
//
// Free makes no device call. Trim unmaps the slots of idle handles, aliases first, and releases the
// handles, and the windows in which nothing is mapped. The slots that it leaves at the end of a
// window are used again. Alias windows have at most twice the bytes held, and there are at most 64
// windows. Beyond that the alias windows without a live block that were used least recently are
// undone.
//
// The device may refuse any call. A slot exists only once it is mapped and accessible. If mapping
// fails, the handles of the attempt are unmapped and released; memory that the device refuses to
// take back stays, as slack at the end of a home window or as a handle without a mapping, and is
// retried with the next growth or trim.
//
// # Pages: the view of a walk
//
// Idle memory is shown in its home window, memory in use in the window through which it is. Other
// mappings are aliased. The largest hole is the largest free chunk of that walk, although an alias
// may serve a larger request.
//
// # Pages: cost
//
// A search costs O(1) amortized, at most 64 steps for the place of the counterpart, and a visit to
// each slot of the block and to the other slots of its handle. An alias costs O(handles × windows)
// and a device call for each handle.
//
// # Private pools
//
// With Config.Map "graph" requests can be redirected into private pools, as power.PrivatePools
// describes. Each pool is an allocator over pages of its own, with its own windows, handles and
// watch. Pools share the limit and the statistics, and never exchange memory that they hold. So
// captures of many batch sizes in turn find their places again, and a large capture gets the idle
// memory of the smaller ones at a further address.
//
// A graph contains the addresses of its blocks, freed or not. A pool with users is therefore
// pinned: handles may get further mappings, but no mapping ends and no memory is released. Its
// alias windows may exceed their bound, up to 64 windows. While requests are redirected, every pool
// is pinned, because a capture may not wait for queued work. The memory of a pool without users is
// released by a trim, or when a request outside of it finds none.
//
// Blocks of several streams share a pool. Options of pools are not supported, and wrap.Streamed
// passes no private pools on.
//
// Redirection costs O(redirections) for each request, and a free O(pools).
//
// # Invariants
//
// Over a range, of the fallback, see strategies/bestfit and kit/tiles: Invariant F1 (the maps hold
// the free chunks), Invariant F2 (tails are apart), Invariant F3 (the list holds the free chunks),
// Invariant K1 (chunks tile their region), Invariant K2 (free neighbours are merged), Invariant K3
// (requested at most size), Invariant K4 (the index of addresses holds the live chunks), Invariant
// K5 (every row is a chunk or spare), Invariant K6 (empty bytes), Invariant K7 (counters). Also:
//
// Invariant O1: references name exactly the live blocks, and each has an entry of its own or a
// forgotten one.
// Invariant O2: the shadow holds exactly the homes of the live blocks; blocks elsewhere are
// counted.
// Invariant O3: planned places end within the guard.
// Invariant O4: a plan has a shadow, and live blocks outside of it are counted.
//
// Over pages:
//
// Invariant T1: chunks tile the slots of their window, links mirror, and each slot names the chunk
// with its first byte.
// Invariant T2: the maps hold exactly the free chunks, under their size and address.
// Invariant T3: no two adjacent chunks are free.
// Invariant T4: slots and handles name each other; a handle has at most one slot in a window, and
// the first of its slots is in a home window, the others are not.
// Invariant T5: a slot counts the live chunks that overlap it, a handle is in use through at most
// one slot, and its other slots are blocked.
// Invariant T6: every row of a table is in use or spare.
// Invariant T7: the ledger holds exactly the live chunks.
// Invariant T8: the counters match the walk.
// Invariant T9: the watch names allocations of its log only.
//
// With private pools T1 to T9 hold for each pool, and T8 for all together. Also:
//
// Invariant T10: pools are ordered by number, and each private one has users, redirections or
// memory. Mappings stay in exactly the pools with users, and in all while requests are redirected.
//
// # Sources
//
// The strategy is ours. Its rivals plan from a profile or a recording: Huang and others, STAlloc,
// arXiv 2507.16274, whose counter never re-aligns (strategies/stalloc); PGMO, which plans one
// iteration from a sample run (strategies/pgmo); ComfyUI's memory compiler of August 2026, which
// replays recorded addresses and fails at the first deviation (strategies/compiler). The context of
// the watch is the suffix matching of data compression: Cleary and Witten, Data Compression Using
// Adaptive Coding and Partial String Matching, IEEE Transactions on Communications 32, 1984.
//
// Mapping free memory a second time is from GMLake (Guo and others, ASPLOS 2024, arXiv 2401.08156),
// see strategies/stitch. Growth at the end of a range is from PyTorch's expandable segments.
package recall
