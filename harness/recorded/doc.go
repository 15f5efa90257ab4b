// Package recorded holds real memory traces: training runs recorded at PyTorch's own
// allocator interface, part of the binary so that every comparison can use them.
//
// The README beside this file says how they were recorded and what they do not show.
package recorded
