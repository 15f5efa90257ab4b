// Package ledger is a table of live blocks, kept by address.
//
// It answers the one question that stands before every free: does a live block start
// here, and what was it? The answer gives the caller back a word of its own, so that a
// strategy finds the tree node or the slab chunk of a block without a search over its
// regions. Strategies that find it without one, as by internal/atlas, leave the word zero.
//
// # Data structure
//
// A hash table of buckets of seven cells, 64 bytes each, which is one cache line. A block is in
// the bucket that its address hashes to or, where that is full, in the next one with an empty
// cell; every bucket counts the blocks that passed it by so, and a search ends at the first
// bucket that none did (as in F14 of Facebook's folly). So a search reads one line nearly
// always, and a deletion empties a cell and moves nothing.
//
// A cell holds a start in 39 bits and what was asked for in 32. The start counts in multiples of
// 256 bytes from an origin, 64 TiB below the first block that ever was: 32 bits of it are the
// cell's, and seven are in its mark, a byte of the word that the cells of a bucket share. There
// they are mixed with a hash of the 32, which the 32 undo. So marks differ like
// fingerprints do, a few instructions without a branch find the cells of a mark in the whole
// word (as in Abseil's Swiss tables), and mark and 32 bits together are the start: an answer is
// never a guess. The count has the eighth byte.
//
// The hash is multiplicative (Knuth, volume 3, section 6.4); its upper half times the number of
// buckets is the bucket, so that this number need be no power of two, and the table grows
// from its beginning to its end in one pass. It does so by a quarter, at four fifths full, and
// never shrinks: a block takes 11 to 15 bytes, and in steady state nothing is allocated.
//
// What few callers have lies in columns beside the cells, each from the first block on that
// needs it: words of up to 32 bits take 4 bytes for each cell; streams and tags, upper halves of
// longer words and of sizes of 4 GiB and more, and starts that are farther away or no multiples
// of 256, take 32.
package ledger
