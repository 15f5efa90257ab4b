// Package grid runs logs of training steps in many memories, by many heuristics and within many
// budgets, and says at which budget each combination still completes and at which cost.
//
// A point of the grid is one run of package remat. Feasibility is not monotone in the budget: a run
// may complete within a budget and fail within a larger one. So every point is run, none is
// searched for, and a [Line] shows both the smallest budget that suffices and the largest that does
// not.
//
// Budgets are shares of the base peak, the most bytes that a run without a budget holds at once.
// The memory that counts bytes always runs too: what an allocator needs beyond it is the price of
// fragmentation.
//
// Points run on all cores. The report is the same on any number of them, byte for byte.
package grid
