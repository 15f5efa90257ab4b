// Package follow tracks memory through a replay: blocks from the request until their memory is free
// again, and the memory that the strategy takes from the device and returns.
//
// A [Tap] stands between a strategy and its device. A [Follower] observes each event and calls a
// [Watcher]: for every block when it is granted, when the program frees it and when its memory is
// free again, which may be much later on a strategy with streams; and for device memory.
//
// # Memory
//
// A [power.Historian] reports its actions itself. For other strategies they are derived from device
// calls: a reservation is a segment, and a mapping grows or shrinks one. Every byte of memory is
// shown once: memory mapped at several addresses is shown where a block uses it, otherwise where it
// was mapped first.
//
// # Cost
//
// The host memory of a follower grows with the live blocks. While blocks are pending on a strategy
// that does not report completed frees, each change of the pending bytes costs a walk.
package follow
