// Package postmortem explains why a request ran out of memory, and which blocks to free for it.
//
// A [Heap] is the memory of an allocator at that moment, as Walk shows it, a [Need] the allocator's
// requirements for the request. [Explain] locates the free bytes, finds the owners of the blocks
// that pin their regions, and the fewest blocks whose absence would have made room.
//
// # Sources
//
// [Recording.AtEntry] takes the moment from a PyTorch memory snapshot, whose history records
// refusals.
// [Replay] takes it from a replay through any strategy, and tests whether removing the blocks
// helps.
//
// # Ways to make room
//
// There are three, each with its own minimal set of blocks:
//
//   - A hole inside a region that the request may use: a run of adjacent chunks. For each chunk the
//     shortest run that starts there is compared. O(chunks), exact.
//   - Whole regions returned to the device, so that it can grant the request. This is a knapsack
//     problem, solved exactly up to 2^18 steps; [Plan] reports whether it was.
//   - Whole pages of an expandable region, freed in one place. Several places together may cost
//     less.
//
// Minimal means fewest live blocks, then fewest bytes of them, then fewest blocks in use by a
// stream. The latter need no copy: waiting is enough.
//
// Whether adjacent free chunks merge depends on the allocator. A plan assumes that they do, except
// where [Need] has a Grain, as for buddies.
package postmortem
