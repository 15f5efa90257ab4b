// Package offline packs buffers whose lives are known in advance: how little memory would a trace
// need if somebody had known it all before? It is what the lower bound leaves open, since live
// bytes alone say nothing of where they lie.
//
// # The problem
//
// A buffer is live in [Lower, Upper) and wants Size bytes at one offset. Two that are live at the
// same moment must not share a byte. The height, the end of the highest buffer, is to be least. The
// problem is called dynamic storage allocation, or offline memory planning; to decide a height is
// NP-complete.
//
// # Greedy
//
// [Problem.Greedy] sorts the buffers and puts each on the lowest free offset. It serves a million
// buffers: a tree over time holds the ranges that are taken.
//
// # Search
//
// [Problem.Search] decides capacities. It places buffers from the bottom up, each directly on
// what lies below it, and goes back where that cannot end well:
//
//   - Canonical order. Buffers are placed by ascending offset, at equal offsets by rank, so that
//     one placement is not found in many orders. A buffer that has had its turn at its lowest
//     offset must be raised by one that is placed later.
//   - Sections. Time is cut into the largest sets of buffers that live at once. What is open in a
//     section must fit between the lowest offset of an open buffer there and the capacity.
//   - No lower than now. Whatever is still open comes to lie no lower than the last, and a buffer
//     that has had its turn higher by at least the smallest open one.
//   - Dominance. No buffer is placed so high that another open one would fit below it as a whole.
//   - Nothing above. If nothing open overlaps a buffer, no other choice in its place is tried.
//   - Parts. Where nothing open lives on both sides of a moment, each side is solved by itself, the
//     smaller first.
//   - Refuted states. What is left to do depends on the open buffers, their lowest offsets and
//     which have had their turn, and on nothing else. A state that was refuted is not searched
//     again, however it is reached; buffers of the same life, size and alignment stand for each
//     other.
//   - Turns. Three static orders take turns with twice the steps in each round.
//
// States are known by a hash of 128 bits, so a proof of a bound is right but for a collision. A
// placement needs no such trust: [Problem.Validate] judges it by the buffers alone.
//
// # Sources
//
// Canonical placements, sections, dominance, parts and turns are those of MiniMalloc (Moffitt,
// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS
// 2023). Sections of births before deaths only, the floor of buffers that have had their turn,
// refuted states with classes of buffers, and the smallest part first are additions. The tree over
// time and packing again are ours; docs/offline.md has the figures of each.
package offline
