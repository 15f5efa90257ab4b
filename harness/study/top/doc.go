// Package top reports which parts of a program hold memory: at the peak of live bytes, and at the
// last refused request.
//
// [Measure] reads a trace twice: first to find the two moments, then to collect the blocks live at
// them. It groups the blocks
//
//   - by call site if the trace is from a snapshot with stacks, else by tag, else by size;
//   - by category, such as weights or activations, from the start of the tag or from known
//     functions in the stack, see [Category];
//   - by stack, as a flame graph.
//
// Bytes are requested bytes, so they add up to the lower bound. Memory grows with the live blocks,
// not with the trace.
package top
