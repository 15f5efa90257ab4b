// Package bench times strategies on the yardstick workloads, and reports the memory beside
// each time.
//
// A [Workload] is a workload with its operations in memory. A [Candidate] runs over it: the
// fill and the settle untimed, the churn timed; every request must be granted. [Measure] runs
// many strategies over many workloads and reports; the benchmarks of props/propstest use the same
// workloads under the clock of package testing.
//
// # Time
//
// Rounds are interleaved: the empty loop, then strategies A B C, then again, so that a slowdown of
// the machine affects all of them alike. Each run has a fresh instance over a fresh device and
// begins after a garbage collection. The time is the CPU time of the thread, or wall-clock time
// where that is unavailable; the report names it. The empty loop reads the same operations and
// the same table of live addresses without calling a strategy; it is shown, not subtracted.
//
// A workload that grows has no fill. It is run once before on an instance that is discarded.
//
// # Memory
//
// Exact figures come from a separate run: addresses of blocks, bytes held from the device and, when
// live bytes first reach their peak, the strategy's own metadata. The growth of the Go heap is
// shown beside it. Latencies of single calls come from another run, because reading the clock costs
// as much as an allocation.
//
// # Threads
//
// With [Options.Threads] each workload is divided among goroutines that call one strategy
// concurrently: behind one mutex, in shards, and with the strategy's own locks. Times are of the
// wall clock.
//
// docs/metrics.md has the formula of each figure. All figures except times and the Go heap are the
// same on every machine.
package bench
