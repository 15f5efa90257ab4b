// Package alloc is the contract between a memory allocator and the programs that use or test it.
//
// A [Strategy] reserves regions from a device.Source, splits them into chunks and grants blocks. It
// is an [Allocator] (the hot path) and an [Inspector] (read-only views for statistics, property
// tests and pictures), and it can be closed.
//
// The packages below this one hold the rest of the contract:
//
//   - alloc/power: optional abilities of strategies.
//   - alloc/promise: promises of a configuration beyond the rules below.
//   - alloc/setting: names, presets and configurations, and the catalogue of strategies.
//   - alloc/wrap: wrappers around a strategy, such as Locked, which adds a mutex.
//   - alloc/inspect: the heap of any strategy as text.
//
// # Rules every strategy keeps
//
//   - Single-threaded. wrap.Locked adds one mutex. No call waits inside a strategy.
//   - Deterministic: the same configuration, the same results of the device and the same calls give
//     the same addresses.
//   - A caller's mistake returns [ErrInvalidRequest], [ErrInvalidFree], [ErrClosed] or
//     [ErrUnsupported] and changes nothing that Walk shows. [ErrOutOfMemory] changes no
//     live block, but the strategy may have merged, released or trimmed free chunks. A strategy's
//     own mistake panics with the number of the broken invariant.
//   - Alloc and Free allocate nothing on the Go heap once the strategy is warm.
//   - All metadata is on the host; device memory is never touched.
package alloc
