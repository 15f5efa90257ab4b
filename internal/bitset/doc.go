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
// The bitmap lies in pages of 64 words, 4096 numbers, and a page holds only its words that are not
// zero: in a run of 1, 2, 4 up to 32 words by rank, or in a run of 64 by position. The word of the
// level above is the page's own, and says which words there are. Pages lie in parts of 64, which
// exist only while they have a member. So a few members far apart cost little. A small set, of up to
// 2^18 numbers, has runs of 64 words only, which saves the moves.
//
// # Cost
//
// Add and Remove change one bit and climb only while a word becomes the first or ceases to
// be the last that is not zero. In a set that is not small the first and the last member of a
// word move up to 32 words of its page. Min, Max, Next and Prev read at most two words a level.
// The host memory is 1 KiB for each 2^18 numbers with a member, 8 bytes for each word with
// a member, up to four times that in a page that had more, and 1/1000 bit for each number of the room.
//
// # Source
//
// Van Emde Boas, Preserving Order in a Forest in Less Than Logarithmic Time, 1975, with the
// fan-out of a machine word; so do the page allocators of operating systems.
package bitset
