// Package latency sums up the durations of single calls.
//
// A [Histogram] takes a fixed amount of memory however many calls it counts, so that a timed
// loop allocates nothing, and its [Quantiles] are never below the true ones and at most 1/32
// above. Averages hide what quantiles are for: the one call in a thousand that somebody waits
// for.
package latency
