// Package export shows a replay to the tools of others.
//
// [Replay] replays a trace through any strategy once more and notes all that happens: each request
// and free, what the strategy takes from the device and gives back, each call to the device with
// the time that it takes, and the chunks at the end. A [Run] is written in two forms:
//
//   - [Run.Snapshot] is a memory snapshot of PyTorch, which the page pytorch.org/memory_viz opens.
//   - [Run.WritePerfetto] is the Chrome trace event format, which ui.perfetto.dev and
//     chrome://tracing open.
//
// # Time
//
// Where the trace has times, an event happens at its own; one without a time, when the last one
// did. Without times an event takes one microsecond, and the calls to the device that it leads to
// as long as the device says beside.
//
// # What a snapshot shows
//
// What happens to memory is told by package follow. Where a strategy has reservations and mappings,
// or joins reservations side by side so that a block lies across two, all are shown as parts of
// segments that grow.
//
// All that is not in use is an inactive block, be it free, cached or lost to rounding.
// The segments of a strategy that knows no segments have the stream 0, whatever streams use them.
//
// # Cost
//
// A run takes about 100 bytes of host memory for each allocation and 40 for each call to the
// device. A million events take about a second.
package export
