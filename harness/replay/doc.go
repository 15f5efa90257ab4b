// Package replay runs a trace through a strategy and measures it.
//
// [Prepare] lays a trace out for any number of replays, [Prepared.Run] walks it once, and [Run]
// does both. A replay keeps its own account of requests and grants, watches every device call, and
// compares its account with the strategy's counters at the end; a strategy that miscounts is an
// error, not a result. docs/metrics.md has the formula and unit of every figure.
//
// All figures except times are exact and the same on every machine. External fragmentation is
// sampled after every event of a trace of up to 65,536 events, and after every 2nd, 4th, … of a
// longer one.
//
// Placements and the final state have one form for all strategies, except for traces in the form of
// PyTorch's golden vectors. Replayed through a [power.Counted] strategy, such a trace gives the
// lines of the vectors, including the actions of a [power.Historian].
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
// elsewhere; [ClockName] names it. A reading is a system call of some tenths of a microsecond, so
// it times loops of many calls. [WallTime] times single calls. A [Histogram] collects them in
// constant memory; its quantiles are never below the true ones and at most 1/32 above.
//
// # Cost
//
// Bookkeeping costs a few nanoseconds an event and does not allocate. Fragmentation costs a call of
// LargestFree per sample. Latency of single calls is measured only on request, because reading the
// clock costs as much as an allocation. BenchmarkReplay has the figures.
package replay
