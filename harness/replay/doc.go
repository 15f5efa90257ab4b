// Package replay runs a trace through a strategy and measures it.
//
// [Prepare] lays a trace out for any number of replays, [Prepared.Run] walks it once, and
// [Run] does both. A replay keeps its own account of what the trace asked for and
// what it was granted, watches every call to the device, and compares its account with
// the strategy's own counters at the end; a strategy that miscounts is an error, not a
// result. docs/metrics.md has the formula and unit of every figure.
//
// The figures are exact and the same on every machine, times excepted. External
// fragmentation is looked at after every event of a trace of up to 65,536 events and
// after every 2nd, 4th, … of a longer one.
//
// Placements and the final state have one form for all strategies, but for traces in the form
// of PyTorch's golden vectors. Through a strategy that counts as PyTorch does, which the figures
// of that form need, such a trace gives the lines of the vectors, with what the strategy does
// besides where it is an [alloc.Historian].
//
// Bookkeeping costs a few nanoseconds an event and does not allocate; looking at
// fragmentation costs what the strategy takes to tell its largest free chunk. Latency of
// single calls is measured only when asked for, because reading the clock costs as much as
// an allocation. BenchmarkReplay has the figures.
package replay
