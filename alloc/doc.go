// Package alloc is the contract between a memory allocator and everything that drives
// or judges one.
//
// A [Strategy] takes regions from a [device.Source], cuts them into chunks and grants
// blocks. It is an [Allocator] (the hot path), an [Inspector] (read-only views for
// statistics, property tests and pictures) and it can be closed.
//
// # Rules every strategy keeps
//
//   - Single-threaded. [Locked] adds the one mutex. Nothing waits inside a strategy.
//   - Deterministic: the same configuration, the same answers of the device and the same
//     calls give the same addresses.
//   - A caller's mistake returns [ErrInvalidRequest], [ErrInvalidFree], [ErrClosed] or
//     [ErrUnsupported] and changes nothing that Walk shows. [ErrOutOfMemory] changes no
//     live block; on the way the strategy may have merged, released or trimmed free chunks.
//     A strategy's own mistake panics with the number of the broken invariant.
//   - Alloc and Free allocate nothing on the Go heap once the strategy is warm.
//   - All metadata is on the host; device memory is never touched.
//
// # Powers
//
// What only some strategies can do is a small interface each ([Holes], [Trimmer],
// [Frontier] and so on), with a function of this package that uses it, or falls back to
// a slow and obviously right version over Walk, or returns [ErrUnsupported]. [Has] tells
// what is really there.
//
// # Promises
//
// What a strategy keeps beyond the rules above (how it merges, which blocks it grants,
// which alignments it honours) its configuration states as [Promises], to which the
// property suite holds it. [OneRegion] is a part for strategies that hold the whole device
// as one region.
//
// # Wrappers
//
// [Locked], [Limited], [Recorded], [Retrying], [Filled] and [Streamed] wrap a strategy and are
// strategies. They embed [Forwarder], which passes every power on. A wrapper is never unwrapped:
// reaching around Locked would step around the lock.
//
// # Catalogue
//
// A [Catalogue] is a plain slice of [Spec]. Outsiders append to their own and pass it to
// the harness; nothing registers itself.
package alloc
