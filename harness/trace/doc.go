// Package trace is the event model of a memory trace, and its readers and writers.
//
// A [Trace] is a [Header] and a sequence of [Event]s: what a program asked of its
// allocator, in order. A trace says nothing about addresses, so that any strategy can
// serve it; ids name allocations, and each id is also given a small dense number, its
// slot, so that a replay needs no map.
package trace
