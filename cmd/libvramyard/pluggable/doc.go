// Package pluggable serves a program that allocates through PyTorch's pluggable-allocator interface
// with any strategy of a catalogue. It is the Go part of cmd/libvramyard.
//
// A [Library] has one strategy for each GPU, built on first use from environment variables and
// guarded by a lock. It keeps its own table of live blocks by address, because the sizes that
// PyTorch passes to the free function are unreliable. Every strategy keeps streams apart, by itself
// or inside [wrap.Streamed].
//
// A request that finds no memory waits for pending frees, releases cached memory and is retried
// once. If it fails again the error is an [OutOfMemoryError]. There is no waiting while a private
// pool is being filled, because that happens during a graph capture.
//
// Mistakes of the program are counted in [Library.Stats] and change nothing: frees of dead blocks,
// double frees, frees on another device.
package pluggable
