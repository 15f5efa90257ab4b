// Package sim is a simulated GPU: a device that hands out addresses and holds no memory, but
// knows, if it is told to, what would be in it.
//
// # Address space
//
// Addresses start at [Base]. A request is rounded up to Config.Round bytes; the region
// that comes back has that size. Starts are multiples of Config.Align, or of the
// request's own alignment where that is larger. Which hole a region takes is the policy:
//
//   - [FirstFit]: the lowest address at which the region fits, Config.Gap bytes kept
//     free behind every region;
//   - [Bump]: above everything handed out so far, never reused;
//   - [TopDown]: the highest address at which it fits below Base + 1 TiB.
//
// # Capacity
//
// Each region is charged its size rounded up to Config.Charge. A reservation is refused
// if the charges would exceed Config.Capacity, if the request is above Config.FailAbove,
// or if no address is left below [End].
//
// # Virtual memory
//
// Ranges lie in the same address space as regions, and the policy places them likewise, at
// multiples of Config.Granularity too; their size is not rounded, and they are charged nothing. A
// range at an address lies exactly there. A handle is charged its own size, until it is released
// and mapped nowhere. SetAccess and Unmap take any number of neighbouring mappings, whole ones, of
// one range or of ranges that touch. A call that fails has changed nothing, and answers a bare
// error of package device.
//
// Handles, events and pools have numbers with the device's Config.Ordinal and a generation, so
// that those of another device, and those that are gone, are found out.
//
// # Physical memory
//
// How much is known of it says Config.Memory: with [Counted] its bytes; with [Placed]
// which pages are taken by which region and handle, the lowest free ones, in as many pieces as
// it takes; with [Filled] also what is in it. What was written is known as runs of equal words
// for each region and handle, so it costs what was written, not what there is: a card of
// 80 GiB in blocks of one pattern each costs a run a block. Mappings of one handle show the same
// bytes. What was never written since the region or handle was made is some noise, the same at
// each run of a program.
//
// # Streams and time
//
// What is queued on a stream, work, records of events and waits, takes a ticket. It has finished
// when the stream is drained past its ticket: by Drain and SyncStream as far as it is queued, by
// SyncEvent up to the event, by SyncDevice and Release like all others. Draining past a wait drains
// what was waited for. With Config.Clock at [Drained] nothing else finishes anything, so a trace
// decides alone what is done.
//
// Besides there is time. The host's clock, in nanoseconds, is moved by what calls take and by
// Elapse. A stream is busy until its own clock: the later of that and the host's, and on top what
// work is queued; a wait lifts it to the event's. The host's clock moves to the stream's, or the
// event's, when it is waited for, and a stream that is drained ahead of its clock is done now. With
// [Timed] work has also finished when the host's clock has passed it.
//
// Each stream, and each event with it, has the set of the last marks of the other streams that it
// comes after, through any number of waits. Sets share what they have in common: a chain of n
// streams that wait for each other takes O(n log n) memory. A wait costs O(log streams), and a step
// for each stream in which two sets differ; all else costs O(log streams). A stream that drains
// others takes a step for each.
//
// # Pools
//
// Stream-ordered pools are those of kit/streampool, which tells who may reuse what. They grow by 32
// MiB. What a pool does by itself, records and waits among it, is no call and takes no time, but
// for the regions that it takes and gives back: each takes what one of a caller's would. Unlike
// that it does not make the device wait. SyncEvent, SyncStream and SyncDevice bring pools down to
// their thresholds.
//
// # Determinism
//
// The device is deterministic: the same configuration and calls give the same addresses.
// With the default configuration the placements are those that the golden vectors of the
// strategies were made with.
//
// # Cost
//
// Regions lie in leaves of up to 64 by address, each with a bound on the room below its
// regions. FirstFit and TopDown look at the bounds, 64 leaves at a time, and into the leaves
// that may have room; Bump looks at nothing. A leaf that was looked through for nothing has
// its bound lowered, and only a reservation makes bounds too high, one at a time. So a
// reservation looks through few leaves, and a release, which is a binary search, through
// none. An alignment above Config.Align makes bounds less exact. Calls of virtual memory cost a
// binary search, and a step for each mapping that they change; Fill and Compare a step for
// each run and mapping that they meet. Nothing is allocated on the heap once the device has held
// as many regions, handles and mappings, and as many runs of each.
package sim
