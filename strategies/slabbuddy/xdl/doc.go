// Package xdl is the slab-buddy allocator of Alibaba's X-DeepLearning
// (xdl/core/framework/slab_buddy_allocator), its GPU allocator, placement by placement. Despite
// the name its slab does not stand on its buddy: package slab/xdl with units of a
// quarter of Config.BlockBytes and package buddy/xdl with blocks of BlockBytes take regions of
// RegionBytes from the same device, each its own, and never exchange memory.
//
//	request                     served by   granted
//	0                           -           ErrInvalidRequest
//	1 .. BlockBytes-1           slab        a multiple of BlockBytes/4
//	BlockBytes .. RegionBytes-1 buddy       a power of two
//	RegionBytes ..              device      exactly the request, one region each
//
// With the defaults, a small and a medium request already hold two regions, 2 GiB. A free tries the
// parts in turn, the buddy first, whose regions show which blocks are its own. A block that came
// from the device directly is released when it is freed; nothing else is released before Close.
//
// # Locks
//
// With Config.Locks the slab has the locks of its segments, and buddy and direct requests share one
// mutex. Regions know their owner, so a free takes the lock of one part. One thread gets the same
// placements.
//
// # Invariants
//
// Invariant R1: the size of a request alone says which part serves it.
// Invariant R2: a region belongs to one part, and that part has it.
// Invariant R3: the regions that belong to no part are live direct blocks, or stale: the device
// refused to take them back, and they are slack until they go back.
// Invariant R4: each part behaves as it would alone with the requests routed to it, but
// for where its regions lie.
// Invariant R5: each part keeps its own invariants.
// Invariant R6: the counters match the walk.
//
// R4 is about two runs and cannot be checked in one; a test splits sequences.
//
// # Departures
//
// The allocator departs from the original as its parts do, and in these points:
//
//   - an address that no part knows is ErrInvalidFree, where the original passes it to the
//     device, which aborts;
//   - if the device refuses to take a direct block back, its region stays as slack until the
//     next refused reservation, or Close, releases it;
//   - Close gives direct blocks back too, where the original leaks them.
package xdl
