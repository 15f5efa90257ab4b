// Package page records what is drawn of a replay and writes a report as one HTML file that opens
// offline.
//
// # Pages
//
// [Write] embeds styles, scripts, data and the licences of included software. The file has no
// reference to a network, and its content security policy forbids any. Tables are plain HTML and
// readable without scripts. Pictures are a description in JSON and one compressed array, so that
// the file stays small. Texts from input files, such as names and tags, are cut, cleared of control
// characters and escaped. The same report gives the same file, byte for byte. docs/reports.md
// describes each view.
//
// # Pictures
//
// [NewTrace] reads a trace once and lays out the common axis of its pictures: at most
// [Options].Buckets buckets of equally many events. [Trace.Draw] then replays the trace through a
// strategy and keeps a [Picture] in bounded memory:
//
//   - curves of the sums, of the largest free chunk and of fragmentation: the highest and the
//     lowest value of every bucket, so that no peak is lost, whatever the length of the trace;
//   - blocks as rectangles of events and addresses, those of the most byte-events (size times
//     lifetime) as far as the budget goes, and a raster of all blocks;
//   - regions, in the same way;
//   - the first failures one by one, and their number in every bucket;
//   - calls to the device by kind, and their cost;
//   - every chunk at some instants: at the peaks, at the first failure, at the end, and wherever
//     the caller asks for it.
//
// A point of the axis of events is the state after an event. A block exists from its birth to
// before its death. The axis of addresses leaves out ranges that were never held: [Space] maps one
// to the other.
//
// A trace is replayed twice: once to find the peaks and the addresses, once to fill the raster and
// the instants; and a third time for latency. BenchmarkRecord has the figures. Memory grows with
// the live blocks and with the budgets, not with the length of the trace.
//
// # Files of all blocks
//
// A [BlockFile] holds every block of a replay and finds the largest blocks of a window of events
// and addresses without reading the others. Blocks are written as they die, in chunks of at most
// [perChunk] whose lifetimes are alike: between 2^k and 2^(k+1) events. Within a chunk the largest
// come first. A directory at the end holds, for each chunk, its range of events and addresses and
// the size of its largest block.
//
// [BlockFile.Find] visits chunks in the order of the largest area that one of their blocks can
// cover in the window, until no remaining block can be larger than the smallest one kept. The
// result is exact, unless the search stopped at its limit of blocks; then the result says so.
//
// A block takes 56 bytes in the file and none in memory. The directory takes 64 bytes for a chunk.
// BenchmarkFind has the times. A file is valid on the machine that wrote it and may be deleted at
// any time: [OpenBlocks] refuses an incomplete one, and its writer writes it again.
package page
