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
// Regions are kept in a slice sorted by address. A reservation scans it (FirstFit, TopDown)
// or appends (Bump); a release is a binary search and a move of what lies above.
package sim
