// Package clock is the clock by which replays and strategies are timed.
//
// It counts the CPU time of one thread where the system tells it, so that what else the
// machine does is not in the figure, and else the time of the wall. Reading it is a call of
// the system, some tenths of a microsecond: it is for loops of many calls. Latencies of single
// calls are of the wall's clock, which package latency reads.
package clock
