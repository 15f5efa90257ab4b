// Package sim is a simulated GPU: a device that hands out addresses and holds no memory.
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
// # Streams and time
//
// What is queued on a stream, work, records of events and waits, takes a ticket. It has finished when
// the stream is drained past its ticket: by Drain and SyncStream as far as it is queued, by SyncEvent
// up to the event, by SyncDevice and Release like all others. Draining past a wait drains what was
// waited for. With Config.Clock at [Drained] nothing else finishes anything, so a trace decides
// alone what is done.
//
// Besides there is time. The host's clock, in nanoseconds, is moved by what calls take and by Elapse.
// A stream is busy until its own clock: the later of that and the host's, and on top what work is
// queued; a wait lifts it to the event's. The host's clock moves to the stream's, or the event's, when it is
// waited for, and a stream that is drained ahead of its clock is done now. With [Timed]
// work has also finished when the host's clock has passed it.
//
// Each stream, and each event with it, knows the last mark of each other stream that it comes
// after, through any number of waits: so a wait costs O(streams), all else O(1) or a binary
// search among them, and what is never drained takes no memory. A stream that drains others
// takes a step for each.
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
// none. An alignment above Config.Align makes bounds less exact. Nothing is allocated on the heap
// once the device has held as many regions.
package sim
