// Package follow follows memory through a replay: blocks from the request until their memory is
// free again, and what the strategy takes from the device and gives back.
//
// A [Tap] stands between a strategy and its device. A [Follower] is told of each event and tells a
// [Watcher]: of every block when it is granted, when the program frees it and when its memory is
// free again, which on a strategy with streams may be much later; and of memory.
//
// # Memory
//
// A strategy that is a [power.Historian] tells what it did. Of any other one the device is
// listened to: a reservation is a segment, and a mapping grows or shrinks one. Every byte of memory
// is shown once: memory that is mapped at several addresses is where a block uses it, or else where
// it was mapped first.
//
// # Cost
//
// A follower takes host memory for what is live, not for what there was. While blocks are pending
// on a strategy that does not tell when their free is final, each change of the pending bytes costs
// a walk.
package follow
