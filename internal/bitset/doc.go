// Package bitset is a set of small numbers that answers at once which of them is the
// smallest, the largest, or the next after a given one.
//
// # Data structure
//
// A bitmap with one bit per number, and above it summaries: a bit of a level says that a
// word of the level below is not zero, 64 words to one. All levels lie in one slice, the
// bitmap first. A search reads one word a level, log64 of the room, and each is decided by
// one instruction; there is nothing to rotate, to split or to follow for the garbage
// collector.
//
// # Cost
//
// Add and Remove change one bit and climb only while a word becomes the first or ceases to
// be the last that is not zero. Min, Max, Next and Prev read at most two words a level. The
// room takes 1 + 1/64 + … bits a number.
//
// # Source
//
// Van Emde Boas, Preserving Order in a Forest in Less Than Logarithmic Time, 1975, with the
// fan-out of a machine word; so do the page allocators of operating systems.
package bitset
