// Package planned is the runtime part that the strategies with a plan share: an arena, in which
// blocks lie at planned offsets, and a fallback for all other blocks.
//
// # Data structure
//
// Both are regions of kit/tiles. The free chunks of the fallback are in a map of kit/index by size
// and address. Those of the arena are in a map of their own, and by address too: a place is free if
// one free chunk contains it, which costs O(log chunks).
//
// # Fallback
//
// The smallest free chunk that serves, the lowest of equals; the remainder is split off, and freed
// chunks merge at once. Regions have a multiple of the region size, and are kept. If the device or
// the limit refuses another one, every empty region is released, the arena among them, and the
// request is tried again.
//
// # Invariants
//
// Those of kit/tiles, and:
//
// Invariant Y1: the maps hold exactly the free chunks; those in the arena, and no others, are also
// in the list by address.
// Invariant Y2: the arena is a region that is held, and its live blocks are counted.
package planned
