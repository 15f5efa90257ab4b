// Package sim is a simulated GPU: a device that hands out addresses without memory behind them. It
// can track the contents that the memory would have.
//
// # Address space
//
// Addresses start at [Base]. The size of a region is the request rounded up to Config.Round bytes.
// Its start is a multiple of Config.Align, or of the request's own alignment if that is larger. The
// policy selects the hole:
//
//   - [FirstFit]: the lowest address at which the region fits, with Config.Gap bytes kept free
//     after every region;
//   - [Bump]: above everything handed out so far, never reused;
//   - [TopDown]: the highest address at which it fits below Base + 1 TiB.
//
// # Capacity
//
// Each region is charged its size rounded up to Config.Charge. A reservation fails if the charges
// would exceed Config.Capacity, if the request exceeds Config.FailAbove, or if no address is left
// below [End].
//
// # Virtual memory
//
// Ranges share the address space and the placement policy of regions. They are also aligned to
// Config.Granularity; their size is not rounded, and they are charged nothing. A range requested at
// an address gets exactly that address. A handle is charged its size until it is released and has
// no mappings. SetAccess and Unmap accept any number of adjacent whole mappings, in one range or in
// adjacent ranges. A failed call changes nothing and returns a bare error of package device.
//
// Handles, events and pools have numbers that contain Config.Ordinal and a generation, so stale
// numbers and numbers of another device are rejected.
//
// # Physical memory
//
// Config.Memory sets the level of detail. [Counted] counts bytes. [Placed] also assigns pages to
// each region and handle: the lowest free ones, in any number of pieces. [Filled] also tracks
// contents, as runs of equal words for each region and handle. So memory grows with the number of
// writes, not with the capacity: an 80 GiB card whose blocks hold one pattern each takes one run a
// block. All mappings of a handle show the same bytes. Memory never written since its region or
// handle was made holds noise, the same in each run of a program.
//
// # Streams and time
//
// Everything queued on a stream (work, records of events and waits) takes a ticket. A ticket has
// finished when the stream is drained past it. Drain and SyncStream drain a stream, SyncEvent the
// tickets up to the event, SyncDevice and Release all streams. Draining past a wait drains the
// tickets before its event. With Config.Clock at [Drained] nothing else finishes tickets, so a
// trace alone decides the order.
//
// Time is modelled separately. The host's clock, in nanoseconds, advances by the cost of calls and
// by Elapse. The clock of a stream is the end of its work: queued work starts at the later of this
// clock and the host's; a wait raises it to the event's. Waiting for a stream or an event advances
// the host's clock to its clock; a stream drained ahead of its clock is done immediately. With
// [Timed] a ticket has also finished when the host's clock has passed its end.
//
// Each stream and each event has a set of marks: the last tickets of the other streams that it
// comes after, through any number of waits. Sets share structure: a chain of n streams that wait
// for each other takes O(n log n) memory. A wait costs O(log streams), plus O(1) for each stream in
// which two sets differ; other calls cost O(log streams). Draining a stream costs a step for each
// stream that it drains.
//
// # Pools
//
// Package kit/streampool implements the stream-ordered pools and their rules of reuse. They grow by
// 32 MiB. The internal operations of a pool, such as records and waits, are neither counted nor
// charged. Only the regions that it takes and returns cost time, as much as a caller's; unlike a
// caller's Release, returning one does not wait for the device. SyncEvent, SyncStream and
// SyncDevice trim pools to their thresholds.
//
// # Determinism
//
// The same configuration and calls give the same addresses. The default configuration gives the
// placements with which the golden vectors of the strategies were made.
//
// # Cost
//
// Regions are in leaves of up to 64, by address. Each leaf has an upper bound of the free space
// below its regions. FirstFit and TopDown compare 64 bounds at a time and search the leaves that
// may have room; Bump searches nothing. A search without result lowers the bound of the leaf, and
// only a reservation makes a bound too high, one at a time. So a reservation searches few leaves,
// and a release, which is a binary search, none. An alignment above Config.Align makes bounds less
// exact. Calls of virtual memory cost a binary search and a step for each mapping that they change;
// Fill and Compare a step for each run and mapping that they touch. The heap grows only while the
// device exceeds its previous maximum of regions, handles, mappings or runs.
package sim
