// Package bench times strategies on the yardstick workloads, and says beside each time what
// memory it was bought with.
//
// A [Course] is a workload with its operations in memory. A [Contender] runs over it: the
// fill and the settle untimed, the churn timed, each request to be granted. [Measure] sends
// many strategies over many courses and reports; the benchmarks of props/propstest use the same
// courses under the clock of package testing.
//
// # Time
//
// Rounds are interleaved: the empty loop, then strategies A B C, then again, so that a machine
// that grows slower or is shared hits all of them alike. Each run has an instance of its own
// over a device of its own, and begins behind a garbage collection. What is divided is the
// CPU time of the thread where the system tells it, else the time of the wall; the report says
// which. The empty loop reads the same operations and the same table of live addresses and
// calls nobody; it is shown, not subtracted.
//
// A workload that has no fill, because building up is what it does, is run once before on an
// instance that is thrown away.
//
// # Memory
//
// Exact figures come from a run of their own: where blocks lay, what was held from the device
// and, at the moment when live bytes first are highest, what the strategy says of its own
// tables. What the Go heap grew by stands beside that. Latencies of single calls come from
// another run, because reading the clock costs as much as an allocation.
//
// # Threads
//
// With [Options.Threads] each workload is shared out to goroutines that call one strategy at once:
// behind one mutex, in shards, and with the strategy's own locks. Times are of the wall.
//
// docs/metrics.md has the formula of each figure. All but times and what the Go heap says are
// the same on every machine.
package bench
