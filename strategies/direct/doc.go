// Package direct takes every block straight from the device: each request is a reservation, each
// free a release. It is the baseline against which a strategy that keeps memory is measured, and
// the behaviour of a program that calls cudaMalloc and cudaFree for each tensor.
//
// # Data structure
//
// A table of live blocks by address, and the list of regions held. A region is one block.
//
// # Search, split and merge
//
// There are none. The device rounds the size up to its granularity and chooses the address, and
// the block is the whole region.
//
// # Streams
//
// A release waits until all queued work has finished, as cudaFree does, so the device may hand out
// the memory to any stream at once. The strategy itself keeps no streams apart.
//
// # Cost
//
// Alloc and Free take one call to the device each, and O(log regions) on the host. On a GPU the call
// takes microseconds to milliseconds; the device time of a replay shows the sum. Metadata is 32
// bytes for each region and about 16 for each live block. Nothing is allocated on the Go heap once
// warm.
//
// # Alignment
//
// The device is asked for the alignment of the request, whatever power of two it is.
//
// # Refused calls
//
// If the device refuses a reservation, the request is out of memory. If it refuses a release, the
// block is free and its region stays held as slack. The release is tried again by Trim, and before
// a request is out of memory.
//
// # Invariants
//
// Invariant D1: a region is one live block, or stale: the device refused to take it back.
// Invariant D2: the counters are what the walk shows.
//
// # Source and departures
//
// cudaMalloc and cudaFree of NVIDIA's CUDA Runtime API, Memory Management. PyTorch does the same if
// PYTORCH_NO_CUDA_MEMORY_CACHING is set. A request for no bytes is invalid, where cudaMalloc returns
// a null.
package direct
