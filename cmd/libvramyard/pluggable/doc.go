// Package pluggable serves a program that allocates through PyTorch's pluggable-allocator interface
// with any strategy of a catalogue. It is cmd/libvramyard without its C: what is said here holds
// for the shared library.
//
// A [Library] has one strategy for each GPU, made on first use from environment variables, behind a
// lock of its own. It keeps its own table of live blocks by address, because the sizes that PyTorch
// hands to its free function are not reliable. Every strategy keeps streams apart: by itself, or
// inside [wrap.Streamed].
//
// A request that finds no memory waits for what is pending, gives cached memory back and tries once
// more, and then is an [OutOfMemoryError]. Nothing is waited for while a private pool is filled,
// because a program does that while it captures a graph.
//
// What a program does wrong is counted and told by [Library.Stats], and changes nothing: a free of
// what is not live, of another device, or twice.
package pluggable
