// Package top says which parts of a program hold memory: at the peak of live bytes, and at the last
// request that was refused.
//
// [Measure] walks a trace twice: once to find the two moments, once to collect the blocks that are
// live then. It groups them in three ways:
//
//   - by call site, where the trace is that of a snapshot with stacks; by tag, where allocations
//     have tags; by size, where the file has neither;
//   - by category, such as weights or activations: what a tag begins with, or what the functions of
//     a stack are known to allocate, see [Category];
//   - by stack, as a tree that is drawn as a flame graph.
//
// Bytes are those asked for, so they add up to the live bytes of the lower bound. Memory grows with
// the blocks that are live, not with the trace.
package top
