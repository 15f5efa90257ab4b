// Package stalloc places blocks by a plan that was computed from an earlier run, in the manner of
// STAlloc. Without such a run every block goes to a caching fallback.
//
// # Plan
//
// The profile is the forecast of [power.Planner]. Iterations begin at marks whose text ends in a
// digit, such as "iter 3", and at marks without a text. The plan covers the calls up to the end of
// the first iteration, the head, and the calls of the second, the cycle. A request of the cycle
// with another size in the third iteration, at the same index, is dynamic; all other requests are
// static.
//
// A static block of the head lives as long as in the profile, up to the end of the cycle. A block
// of the cycle that outlives it keeps its place for the whole cycle, because the next cycle
// requests it again. The static blocks are packed by kit/packing in six ways, and the lowest
// packing is taken: three orders, each with every block alone and with groups. A group holds the
// blocks that are requested in one phase and freed in another one, stacked; phases are separated by
// marks. The dynamic blocks are then packed around them, with the larger of their two sizes. Those
// above the static blocks have no place.
//
// # Runtime
//
// One region, the arena, is as large as the packing. A counter of the requests above 512 bytes
// selects the planned place; after the last one it continues with the first of the cycle. A static
// request gets its place if it has exactly the planned size, a dynamic one if it has at most the
// reserved size. Every other request goes to the fallback, and the counter advances all the same.
// It never re-aligns: a missing or an additional request shifts all later ones until the end of the
// run.
//
// # Check
//
// With Config.Check "on", a place that is not free is refused, and the request goes to the
// fallback. With "off", as by default in the original, no place is checked: if the run deviates
// from the profile, two live blocks may share bytes. The property suite finds this (invariant I10),
// and docs/strategies/stalloc.md has the fewest calls that show it. A walk shows the first of such
// blocks only, and the counters may exceed the memory that is held. A place at whose start a live
// block starts is not used even then, because addresses name blocks.
//
// # Cost
//
// Alloc and Free cost O(log free chunks). The plan costs at most six packings of 2^24 steps.
//
// # Invariants
//
// Of the table of chunks, see kit/tiles: Invariant K1 (chunks tile their region), Invariant K2
// (free neighbours are merged), Invariant K3 (requested at most size), Invariant K4 (the index of
// addresses holds the live chunks), Invariant K5 (every row is a chunk or spare), Invariant K6
// (empty bytes), Invariant K7 (counters). Of arena and fallback, see strategies/internal/planned:
// Invariant Y1 (the maps hold the free chunks), Invariant Y2 (the live blocks of the arena are
// counted).
//
// # Source and departures
//
// Huang and others, STAlloc: Enhancing Memory Efficiency in Large-Scale Model Training with
// Spatio-Temporal Planning, arXiv 2507.16274, and its code, github.com/infinigence/STAlloc under
// the Apache License 2.0: Allocator/StaticAllocator.hpp, Allocator/main.cpp and Synthesizer. The
// differences:
//
//   - The original learns layers and phases from hooks in Megatron-LM, and takes the tensors of
//     expert layers as dynamic. Here marks separate phases, and sizes decide. Dynamic requests do
//     not count in the original's counter, because hooks select them; here every request counts.
//   - The original stops if iterations of the profile differ in static tensors. Here such requests
//     are dynamic.
//   - The original places weights, optimizer states and blocks that cross iterations in areas of
//     their own, without reuse. Here all are packed together.
//   - The original has its own planner. Here it is kit/packing, with the original's two ways to
//     form groups.
//   - Dynamic tensors search the free ranges of their layer for the best fit. Here each has one
//     place in them.
//   - The original has a pool for requests of up to 512 bytes. Here they go to the fallback.
//   - The fallback of the original is a copy of PyTorch's caching allocator. Here it is a best fit
//     over regions that are kept; it knows no streams.
//   - Two blocks of the original may start at the same address. Here the second goes to the
//     fallback.
//   - The original ignores an alignment. Here a place that is not aligned is not used.
//   - The original fails if the arena does not fit the device. Here every block then goes to the
//     fallback; the next cycle tries again.
package stalloc
