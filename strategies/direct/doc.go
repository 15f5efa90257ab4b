// Package direct takes every block straight from the device: each request is a reservation, each
// free a release. It is the baseline for strategies that keep memory, and the behavior of a program
// that calls cudaMalloc and cudaFree for each tensor.
//
// # Data structure
//
// A table of live blocks by address, and the list of regions. A region is one block: the device
// rounds the size up to its granularity, chooses the address, and honours the alignment of the
// request. There is no search, no split and no merge.
//
// # Streams
//
// A release waits until all queued work has finished, as cudaFree does, so the device may grant the
// memory to any stream at once. The strategy does not distinguish streams.
//
// # Cost
//
// Alloc and Free take one call to the device each, microseconds to milliseconds on a GPU, and O(log
// regions) on the host. Metadata is 32 bytes for each region and about 16 for each live block. In
// steady state nothing is allocated on the Go heap.
//
// # Refused calls
//
// A refused reservation is out of memory. After a refused release the block is free and its region
// stays held as slack. Trim retries the release, as does a request before it fails.
//
// # Invariants
//
// Invariant D1: a region is one live block, or stale: the device refused to release it.
// Invariant D2: the counters match the walk.
//
// # Source and departures
//
// cudaMalloc and cudaFree of NVIDIA's CUDA Runtime API, Memory Management. PyTorch does the same if
// PYTORCH_NO_CUDA_MEMORY_CACHING is set. A request for no bytes is invalid, where cudaMalloc
// returns null.
package direct
