// Package wrap holds wrappers around a strategy. [Locked] adds a mutex, [Sharded] builds several
// with a mutex each, [Limited] adds a limit of bytes, [Recorded] reports every call, [Retrying]
// waits for memory, [Filled] checks the contents of the memory, and [Streamed] makes a strategy
// without knowledge of streams safe for them.
//
// A wrapper embeds [Forwarder], through which package power finds the powers of the strategy. Only
// package power unwraps a strategy, because it holds the lock of [Locked] while it does.
package wrap
