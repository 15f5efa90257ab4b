// Package snapshot reads and writes PyTorch's CUDA memory snapshots, the files that
// torch.cuda.memory._dump_snapshot makes.
//
// A [Snapshot] has, for each device, the history of what the allocator was asked and did, and the
// segments it held at the end with their blocks. Nothing is a map: a history is packed columns,
// strings, frames and stacks are kept once and referred to by index.
package snapshot
