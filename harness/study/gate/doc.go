// Package gate judges the memory of recorded work against a committed budget.
//
// The reserved memory of a program depends on all that its allocator served before: identical work
// measures differently after another warm-up. The gate therefore measures the requests of the work
// and not the run. It replays them from canonical states of the pool, so equal requests give equal
// figures.
//
// # The work and its states
//
// The work is the recorded steps, as [trace.Steps] finds them in the marks, or the whole recording
// without such marks. A [Work] has one or two states:
//
//   - [Empty]: the steps after the warm-up, from an empty pool that holds only the blocks live
//     before them.
//   - [Warm]: the warm-up steps from such a pool, then the others. Sizes are of all steps, device
//     calls of those after the warm-up. A work without steps lacks this state.
//
// # The canonical form
//
// Earlier work leaves traces in a recording: the order and the identities of the live blocks,
// private pools, the numbers of streams, and when delayed frees complete. The canonical form
// removes them:
//
//   - Blocks live before the work are allocated first: by stream, those never freed before those
//     freed late, large ones before small ones. Blocks already freed are left out.
//   - Ids, streams, threads and private pools are numbered by their first use in the work. Streams
//     and pools that only earlier blocks use follow, ordered by those blocks; threads that the work
//     does not use count as one.
//   - A free is final where the program requested it, because its completion depends on the timing
//     of the device. Uses by other streams are dropped, and so are times.
//
// # Verdicts
//
// [Baseline] is the content of the committed file. [Work.Measure] returns the figures of the work,
// and [Baseline.Judge] compares them with the file. It explains violated figures: it compares the
// allocations of the work with those that the file lists, by call site and size, and returns the
// blocks that were added, grew or live longer.
package gate
