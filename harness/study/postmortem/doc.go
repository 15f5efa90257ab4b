// Package postmortem says why a request found no memory, and what would have made room.
//
// A [Heap] is an allocator's memory at that moment, as Walk shows it, and a [Need] what the
// allocator makes of the request. [Explain] counts where the free bytes are, who holds the regions
// that they lie in, and finds the fewest blocks without which there would have been room.
//
// # Sources
//
// [AtEntry] takes the moment from a PyTorch memory snapshot, whose history tells when a request was
// refused. [Replay] takes it from a replay through any strategy, and tries whether the blocks that
// it names were really in the way.
//
// # What counts as room
//
// There are three ways, each with its own least set of blocks:
//
//   - one hole inside a region that the request may use: a run of chunks next to each other. For
//     each chunk the shortest run that begins there is compared. O(chunks), exact.
//   - whole regions that go back to the device, so that it has what it was asked for. That is a
//     knapsack; it is solved exactly up to 2^18 steps, and [Plan] says if it was not.
//   - whole pages of a region that grows, freed in one place. Several places together may cost
//     less.
//
// Least is fewest live blocks, then fewest bytes of them, then fewest blocks that a stream still
// uses. Blocks that a stream still uses have no cost of copying: waiting is enough.
//
// What of two free chunks merges is the allocator's affair. A plan assumes that all that is next to
// each other and free does; where it knows better, as with buddies, [Need] has a Grain.
package postmortem
