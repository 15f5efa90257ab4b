// Package blocks keeps every block of a replay in a file and finds those of a window of events and
// addresses again, the largest first, without reading the others.
//
// # The file
//
// Blocks are written as they die, in chunks of at most [perChunk] whose lifetimes are alike: between 2^k and
// 2^(k+1) events. Within a chunk the largest come first. So a chunk covers a short stretch of events, or one as
// long as its blocks live, and its first blocks are those that are seen from afar. A directory at the end says
// of each chunk which events and addresses it spans and how large its largest block is.
//
// # A window
//
// [File.Find] takes chunks in the order of the most that a block of theirs can cover of the window, piece by
// piece, until no block that is left can be larger than the smallest that is kept. What it returns is exact:
// no block that is left out covers more byte-events of the window than one that is returned, unless so many
// were looked at that it stopped, and then it says so.
//
// # Cost
//
// A block takes 56 bytes in the file, and nothing in memory. The directory takes 64 bytes for a chunk.
// BenchmarkFind has the time of windows. A file is for this machine and may go: [Open] refuses one that is not
// whole, and whoever wrote it writes it again.
package blocks
