// Package picture records a replay as what is drawn of it, in bounded memory.
//
// [NewTrace] looks at a trace once and lays the common axis of all pictures of it: at most
// [Options].Buckets buckets of equally many events. [Trace.Record] then replays the trace through a
// strategy and keeps a [Run]:
//
//   - curves of the sums, of the largest free chunk and of fragmentation: the highest and the lowest
//     value of every bucket, so that no peak is lost, whatever the length of the trace;
//   - blocks as rectangles of events and addresses, those of the most byte-events (size times lifetime)
//     as far as the budget goes, and beside them a raster of all blocks;
//   - regions, in the same way;
//   - the first failures one by one, and how many there were in every bucket;
//   - calls to the device by kind, and what they took;
//   - every chunk at some instants: at the peaks, at the first failure, at the end, and wherever the
//     caller wants it.
//
// # Axes
//
// A point of the axis of events is the state after an event. A block is there from its birth to before
// its death. The axis of addresses leaves out what was never held: [Space] maps one to the other.
//
// # Cost
//
// A trace is replayed twice, once to find the peaks and the addresses, once to fill the raster and look
// at the instants, and a third time if latency is wanted. BenchmarkRecord has the figures. Memory grows
// with what is live and with the budgets, not with the trace.
package picture
