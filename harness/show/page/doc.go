// Package page records pictures of replays and writes a report as one HTML file that opens offline.
//
// # Pages
//
// [Write] embeds styles, scripts, data and the licences of included software. The file needs no
// network, and its content security policy forbids access to one. Tables are plain HTML and
// readable without scripts. Pictures are a description in JSON and one compressed array, so that
// the file stays small. Strings from input files, such as names and tags, are cut, cleared of
// control characters and escaped. Output is deterministic, byte for byte. docs/reports.md describes
// each view.
//
// # Pictures
//
// [NewTrace] reads a trace once and lays out the common axis of its pictures: at most
// [Options].Buckets buckets of equally many events. [Trace.Draw] then replays the trace through a
// strategy and keeps a [Picture] in bounded memory:
//
//   - curves of the sums, of the largest free chunk and of fragmentation, with the maximum and the
//     minimum of every bucket, so that no peak is lost in a long trace;
//   - the blocks with the most byte-events (size times lifetime) as rectangles of events and
//     addresses, up to a limit, and a raster of all blocks;
//   - regions, likewise;
//   - the first failures, and the number of failures in every bucket;
//   - calls to the device by kind, and their cost;
//   - every chunk at the peaks, at the first failure, at the end, and at chosen events.
//
// A point on the event axis is the state after an event. A block exists from its birth until just
// before its death. The address axis omits ranges that were never reserved; [Space] maps addresses
// to it.
//
// A trace is replayed twice: first to find the peaks and the addresses, then to fill the raster and
// the instants. Latency needs a third replay. BenchmarkRecord has the figures. Memory grows with
// the live blocks and with the limits, not with the length of the trace.
//
// # Files of all blocks
//
// A [BlockFile] holds every block of a replay and finds the largest blocks of a window of events
// and addresses without reading the others. Blocks are written as they die, in chunks of at most
// [perChunk] blocks with similar lifetimes, between 2^k and 2^(k+1) events. Within a chunk the
// largest come first. A directory at the end holds, for each chunk, its range of events and
// addresses and the size of its largest block.
//
// [BlockFile.Find] visits chunks in the order of the largest area that one of their blocks can
// cover in the window, until no remaining block can be larger than the smallest one kept. The
// result is exact, unless the search stopped at its limit of blocks; then the result is marked.
//
// A block takes 56 bytes in the file and none in memory. The directory takes 64 bytes for a chunk.
// BenchmarkFind has the times. A file is valid on the machine that wrote it and may be deleted at
// any time: [OpenBlocks] refuses an incomplete one, and its writer writes it again.
package page
