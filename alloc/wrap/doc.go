// Package wrap holds strategies around a strategy. [Locked] adds a mutex, [Limited] a limit of
// bytes, [Recorded] tells of every call, [Retrying] waits for memory, [Filled] checks what is in
// the memory, and [Streamed] makes a strategy safe for streams that it knows nothing of.
//
// A wrapper embeds [Forwarder], behind which package power finds the powers of the strategy: with
// the lock of [Locked] held, so nothing else may unwrap it.
package wrap
