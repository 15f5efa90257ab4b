// Package compiler records the large requests of one iteration and replays their addresses in the
// next ones, in the manner of ComfyUI's memory compiler of August 2026. It needs a device with
// virtual memory.
//
// # Recording
//
// Iterations begin at marks whose text ends in a digit, such as "iter 3", and at marks without a
// text. While an iteration is recorded, each request of at least a page gets a segment: a range of
// addresses with whole pages of Config.PageBytes. Freeing the block makes its pages usable for
// other segments, but the segment keeps its addresses and stays mapped. A request takes the first
// segment of its size whose pages are all free. Otherwise a new segment is mapped from free
// pages, and pages are created for the rest. A page can thus be mapped in many segments; at most
// one of them is live. The memory is the peak of the pages that are live at once.
//
// # Replay
//
// The next iteration is validated against the record, request by request: the size must be the
// same, and the pages of the recorded segment must be free. Then its address is returned without a
// device call.
//
// # Graph break
//
// Any mismatch is a graph break, as are a request beyond the end of the record and a refusal by the
// device. The whole graph fails: the rest of the iteration goes to the fallback. When the next
// iteration begins, segments without a live block are undone, their pages are released, and it is
// recorded from its start.
//
// # Fallback
//
// Requests below a page, before the first iteration and after a graph break go to a best fit over
// regions that are kept, see strategies/internal/planned. If it finds no memory, the free memory of
// the graph is released, and it tries again. If the graph finds no memory, the empty regions of the
// fallback are released.
//
// # What a walk shows
//
// A walk shows every byte of memory once. A live segment is one live chunk. The free pages are
// shown in their home, the segment for which they were created; everywhere else they are aliased,
// and so are the pages of live blocks outside of the live segment.
//
// # When the device refuses
//
// A segment is granted only when all its pages are mapped and accessible. If a step fails and the
// device does not unmap the pages either, the segment is broken: it shows its own pages as slack,
// and is undone whenever memory is released. Pages without a mapping count as Forgotten.
//
// # Cost
//
// A replayed request costs O(pages of the request). A recorded one also visits the segments of its
// size, and makes two calls for each new page, one for each other page, and two more. A request of
// more than 8,192 pages goes to the fallback.
//
// # Invariants
//
// Of arena and fallback, see strategies/internal/planned and kit/tiles: Invariant Y1 (the maps hold
// the free chunks), Invariant K1 (chunks tile their region), Invariant K2 (free neighbours are
// merged), Invariant K3 (requested at most size), Invariant K4 (the index of addresses holds the
// live chunks), Invariant K5 (every row is a chunk or spare), Invariant K6 (empty bytes), Invariant
// K7 (counters). Also:
//
// Invariant J1: a page is in use exactly if one live segment maps it, and no two do.
// Invariant J2: each page lists the segments that map it, and its home is one of them.
// Invariant J3: the ledger holds exactly the live segments.
// Invariant J4: the counters match the walk.
//
// # Source and departures
//
// The description of pull request 93 of github.com/Comfy-Org/comfy-aimdo, "Implement a Memory
// Compiler", and of pull requests 15861 and 16180 and issue 16144 of github.com/Comfy-Org/ComfyUI.
// That code is under the GPL; we read descriptions and discussions only. So the differences that we
// know of are:
//
//   - The original begins and ends a recording by calls in the model, with nested and optional
//     scopes, and can be paused. Here marks of the program separate iterations, each is one scope,
//     and nothing pauses it.
//   - The original also records small requests. Here requests below a page go to the fallback.
//   - The original maps all segments in one range and searches windows of it whose pages are
//     distinct and free. Here each segment is a range of its own and is reused as a whole.
//   - The original evicts weights if it needs pages. Here nothing is evicted.
//   - The fallback of the original is the CUDA driver's.
//   - A block that outlives its iteration does not fail the graph here. The replay fails if its
//     pages are still in use when its request comes again.
package compiler
