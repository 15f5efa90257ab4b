// Package torch reads and writes PyTorch's CUDA memory snapshots, the files of
// torch.cuda.memory._dump_snapshot, and converts their histories to traces.
//
// A [Snapshot] holds, for each device, the history of the allocator's calls and the segments with
// their blocks at the time of the dump. The history is stored in packed columns; strings, frames
// and stacks are stored once and referenced by index. A file in pickle or JSON is read by [Read]
// and written by [Write].
//
// # Traces
//
// A history names blocks by address, begins at an arbitrary moment, and mixes the program's
// requests with the actions of the allocator. A trace holds the requests only: each allocation has
// an id of its own, and the blocks that were live before the history begins are allocated first.
// [Traces] converts a snapshot.
//
// The opening state is solved backwards from the segments at the end: read in reverse, an
// allocation removes its block, a completed free restores it as pending, and a requested free makes
// a pending block live. The remaining blocks were there at the beginning. A block pending at that
// moment had been freed by the program before; the first events of the trace free it. If a history
// has no requested frees, its completed frees count as the program's.
//
// PyTorch records two entries for each free. They are adjacent unless another stream still uses the
// memory; then the trace has a Free at the request and a Completed where the memory became
// reusable. Blocks still pending at the end are completed by the last events of the trace, so that
// a replay keeps their memory occupied as the recorded program did.
//
// Inconsistent entries are not errors: they are left out or bridged, and counted in the [Report]
// with their first position. The report also lists facts that such a file cannot contain.
//
// # Cost
//
// An entry with its event of the trace takes about 120 bytes. Converting a million entries takes a
// fraction of a second.
package torch
