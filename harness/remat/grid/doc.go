// Package grid runs logs of training steps with many strategies, heuristics and budgets, and
// reports the smallest budget and the overhead of each combination.
//
// A point of the grid is one run of package remat. A run may complete within a budget and fail
// within a larger one, so no budget is skipped. A [Line] shows both the smallest budget within
// which the run completes and the largest within which it does not.
//
// Budgets are shares of the base peak, the peak of a run without a budget. Every grid includes the
// counting memory, which has no fragmentation: the additional budget that a strategy needs is its
// price of fragmentation.
//
// [LargestBatches] varies the batch size instead: how large a batch completes within a budget, by
// every strategy and heuristic and without eviction. Feasibility is not monotone there either.
//
// Points run in parallel. The report does not depend on the number of workers.
package grid
