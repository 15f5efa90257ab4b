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
