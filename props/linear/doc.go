// Package linear checks invariant I45: calls of many goroutines to one strategy answer as
// if each of them had happened at one moment between its beginning and its end.
//
// [RunLoad] runs concurrent callers that allocate and free on a strategy with very few blocks of
// one size, so that they conflict all the time, and records the start, answer and end of each call.
// [Check] searches an order of the calls that is consistent with these times and for which a
// [Model] gives the same answers. The model is exact for a strategy of equal blocks: any free block
// may be granted, so it takes the one that was; out of memory is right only while all blocks are
// live; a free is right only for a live block.
//
// A request that waits for memory (power.Waiter) is one call: it is granted at some moment
// of its wait.
//
// [Verify] does both for a strategy that promises to be power.Concurrent, and [Rest] judges the
// state that is left, which is all that a quiescent strategy promises.
//
// Few blocks make the search for an order short, thousands of calls make a wrong answer
// likely: with four blocks and four callers, ten thousand calls are checked in well under a
// second.
package linear
