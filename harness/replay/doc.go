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
// besides where it is a [power.Historian].
//
// # Targets
//
// A [Target] is a simulated device or a GPU; [ParseTarget] reads its name. Any number of simulated
// devices may run in parallel, each opened fresh. A GPU runs one replay at a time, and its
// addresses and times differ from run to run. [Target.Watch] samples the memory that the driver
// reports as in use on the whole GPU.
//
// # Clocks and latency
//
// [ThreadTime] reads the CPU time of one thread where the system has such a clock, and wall time
// elsewhere; [ClockName] says which. A reading is a system call of some tenths of a microsecond, so
// it times loops of many calls. [WallTime] times single calls. A [Histogram] collects them in
// constant memory; its quantiles are never below the true ones and at most 1/32 above.
//
// # Cost
//
// Bookkeeping costs a few nanoseconds an event and does not allocate; looking at
// fragmentation costs what the strategy takes to tell its largest free chunk. Latency of
// single calls is measured only when asked for, because reading the clock costs as much as
// an allocation. BenchmarkReplay has the figures.
package replay
