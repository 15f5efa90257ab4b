// Package pages tells what lies at an address: a label for each page of the memory that ranges
// were entered for.
//
// It answers, before anything is known of a block, in which region or slab it lies, from the
// address alone and without a search. A table of blocks then need not tell it again for each.
//
// # What a label says
//
// A page is 2^k bytes at a multiple of that. Its label is that of the range which holds its first
// byte, 0 if none does. So the answer of Get is one for the first byte of the page:
//
//   - An address in a range that starts at a multiple of the page has the range's label.
//   - What follows a range in its last page has its label as well. Whoever asks knows how long
//     the range is, and compares.
//   - A range that starts elsewhere and is at least a page long has its label from its first whole
//     page on. Before that Get answers for what lies below; Get of the same address plus a page
//     less one byte is then the range's. One of both is right for every address.
//
// Two ranges can share a page so, and neither changes what is told of the other.
//
// # Data structure
//
// Leaves of 256 labels, each for 256 pages from a multiple of 256 on, and a root that leads to
// them: a slice over all leaves from the lowest to the highest, with room to spare. Where
// nothing is, the root leads to one leaf without labels, so that a lookup is a subtraction, two
// shifts, one comparison and two loads, the first of which is near nearly always: 10 GiB in
// pages of 16 KiB are 2560 words of the root.
//
// When a leaf comes that lies outside, the root moves: it begins anew at the lowest leaf, or ends at
// the highest, whichever side was outgrown, and has half of what it spans to spare. So regions
// that wander through the addresses move it once in many. It spans at most 16 words for each
// leaf, or 4096; what lies farther apart than that, as regions can in 2^64 bytes, is found by
// a binary search in a list of all leaves instead, as long as it does.
//
// A leaf whose last label goes is used again. Nothing is taken from the heap once there were as
// many leaves, as far apart.
package pages
