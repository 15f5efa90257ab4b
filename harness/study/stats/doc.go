// Package stats compares two strategies, or two versions of one, over many traces: paired
// differences with their uncertainty.
//
// [Compare] pairs the runs of two sides by trace, and compares each figure by its ratio B / A. The
// ratio over all traces is the geometric mean, with a bootstrap interval. The numbers of traces on
// which B is lower or higher have the p-value of a sign test. In the minimum capacity, a run that
// failed is higher than any that completed, and has no ratio. The other figures are compared where
// both sides complete.
//
// Results are deterministic: the bootstrap is seeded, and its sums are integers.
package stats
