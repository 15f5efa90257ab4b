// Package slabbuddy sends each request by its size to a slab, to a buddy, or straight to
// the device.
//
// # Data structure
//
// Two allocators, package slab in mode "xdl" with units of a quarter of Config.BlockBytes
// and package buddy with blocks of BlockBytes, take regions of RegionBytes from the same
// device, each its own; they never exchange memory. One table over both, and over the
// regions that are single blocks, keeps all regions by address with their owner.
//
// # Search
//
//	request                     served by   granted
//	0                           nobody      ErrInvalidRequest
//	1 .. BlockBytes-1           slab        a multiple of BlockBytes/4
//	BlockBytes .. RegionBytes-1 buddy       a power of two
//	RegionBytes ..              device      exactly the request, one region each
//
// With the defaults a small and a medium request already hold two regions, 2 GiB.
//
// # Split and merge
//
// As in the part that serves the request. A block straight from the device is a region of
// its own and goes back when it is freed; nothing else goes back before Close.
//
// # Cost
//
// That of the part. A free asks the parts in turn, slab first; one that has no block at
// the address says so after one probe of its table. A direct block costs a device call.
//
// # Alignment
//
// As in the part that serves the request; for a direct block any power of two, which is
// passed on to the device.
//
// # Invariants
//
// Invariant R1: the size of a request alone says which part serves it.
// Invariant R2: a region belongs to one part, and that part has it.
// Invariant R3: live direct blocks are the regions that belong to no part.
// Invariant R4: each part behaves as it would alone with the requests routed to it, but
// for where its regions lie.
// Invariant R5: each part keeps its own invariants.
// Invariant R6: the counters are what the walk shows.
//
// R4 is about two runs and cannot be checked in one; a test splits sequences.
//
// # Source and departures
//
// Mode "xdl" is the slab-buddy allocator of Alibaba's X-DeepLearning
// (xdl/core/framework/slab_buddy_allocator), its GPU allocator, placement by placement. It
// departs from it as its parts do, and in these points:
//
//   - an address that no part knows is ErrInvalidFree, where the original passes it to the
//     device, which aborts;
//   - if the device refuses to take a direct block back, Free fails with the device's error
//     and the block stays live;
//   - Close gives direct blocks back too, where the original leaks them.
package slabbuddy
