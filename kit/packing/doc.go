// Package packing places buffers whose lifetimes are known in advance, each at one offset. Buffers
// that are live at the same time must not overlap, and the end of the highest one should be low.
// The problem is known as dynamic storage allocation or offline memory planning; it is NP-complete.
//
// [Problem.Pack] is greedy: each buffer goes to the lowest offset that is free during its life.
// Buffers may lie at fixed offsets already, and the steps are bounded. harness/study/offline adds a
// search; strategies that plan from a profile use this package alone.
package packing
