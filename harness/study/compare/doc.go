// Package compare replays traces through many strategies and reports the figures that decide
// between them.
//
// The headline is the minimum capacity: the smallest simulated device on which a trace
// completes, with the strategy's own limit set to that capacity. Completing is not
// monotone in the capacity (a larger limit makes BFC split its regions differently), so the
// search does more than bisect; see search.go.
//
// Replays run on all cores. The set of replays and every figure except times are the same
// on any number of them.
package compare
