// Package grid runs logs of training steps with many strategies, heuristics and budgets, and
// reports the smallest budget and the overhead of each combination.
//
// A point of the grid is one run of package remat. Feasibility is not monotone in the budget: a run
// may succeed at a budget and fail at a larger one. So every point is run, and a [Line] shows both
// the smallest budget that suffices and the largest that does not.
//
// Budgets are shares of the base peak, the peak of a run without a budget. The counting memory
// always runs too: the additional budget that an allocator needs is the price of fragmentation.
//
// Points run in parallel. The report does not depend on the number of workers.
package grid
