// Package export writes replays in formats of other tools.
//
// [Replay] replays a trace through any strategy and records everything: requests and frees, memory
// reserved and released by the strategy, driver calls with their time, and the chunks at the end. A
// [Run] can be written in two formats:
//
//   - [Run.Snapshot] is a PyTorch memory snapshot, for pytorch.org/memory_viz.
//   - [Run.WritePerfetto] is the Chrome trace event format, for ui.perfetto.dev and
//     chrome://tracing.
//
// # Time
//
// If the trace has times, an event happens at its own time, or at the last known time. Otherwise
// each event takes one microsecond, plus the time of its driver calls according to the device.
//
// # What a snapshot shows
//
// Package follow derives the actions on memory. If a strategy has reservations and mappings, or
// joins adjacent reservations so that a block spans two, all are shown as parts of expandable
// segments.
//
// All memory that is not in use is an inactive block: free, cached or lost to rounding. Segments of
// a strategy without segments have stream 0, whichever streams use them.
//
// # Cost
//
// A run takes about 100 bytes of host memory for each allocation and 40 for each driver call. A
// million events take about a second.
package export
