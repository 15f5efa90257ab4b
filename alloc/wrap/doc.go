// Package wrap holds strategies around a strategy. [Locked] adds a mutex, [Limited] a limit of
// bytes, [Recorded] tells of every call, [Retrying] waits for memory, [Filled] checks what is in
// the memory, and [Streamed] makes a strategy safe for streams that it knows nothing of.
//
// A wrapper embeds [Forwarder], which passes every power on. A wrapper is never unwrapped: a call
// around [Locked] would not hold its lock.
package wrap
