// Package bitset is a set of small numbers that answers at once which of them is the
// smallest, the largest, or the next after a given one.
//
// # Data structure
//
// A bitmap with one bit per number, and above it summaries: a bit of a level says that a
// word of the level below is not zero, 64 words to one. A search reads one word a level,
// log64 of the room, and each is decided by one instruction; there is nothing to rotate or
// to split.
//
// The bitmap lies in pages of 4096 numbers that exist only where a member ever was, so that
// a few members far apart cost little, the summaries in one slice.
//
// # Cost
//
// Add and Remove change one bit and climb only while a word becomes the first or ceases to
// be the last that is not zero. Min, Max, Next and Prev read at most two words a level. The
// room takes 1/16 bit a number for the table of pages and the summaries, and 1 bit a number
// where members are or were.
//
// # Source
//
// Van Emde Boas, Preserving Order in a Forest in Less Than Logarithmic Time, 1975, with the
// fan-out of a machine word; so do the page allocators of operating systems.
package bitset
