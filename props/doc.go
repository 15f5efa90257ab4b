// Package props checks the invariants of every allocator by driving one.
//
// # Parts
//
//   - An [Op] is one call, legal or not. Every sequence of them can be run, so a failing
//     sequence stays runnable when operations are removed.
//   - [Sequences] generates and shrinks them; [Shrink] continues where the generator stops.
//   - One interpreter executes operations on one or several instances of a strategy, and
//     notifies an observer before and after each call. Observers are the runner of [Verify], the
//     lockstep of [Metamorphic], [Identical] and [Differential], the [Judge] of replays and [Bounded].
//   - The [Model] is the reference: a list of live blocks and sums over it.
//   - The predicates ([Tiling], [Regions], [Coalescing] and so on) are pure functions of
//     walks, statistics and the model. Each names its invariant and the two values that
//     disagree. docs/invariants.md lists them all.
//   - [promise.Set] are the guarantees of one strategy, in one configuration, beyond the
//     core that every strategy keeps.
//   - [Verify] runs generated sequences and judges every answer and the state after every
//     step. [VerifyFaults] lets the device refuse each of its calls in turn. A [Failure]
//     carries seed, step, invariant and the shrunken sequence as a trace.
//   - [Claims] and [Metadata] judge what a configuration claims about capacity, limit and
//     host memory.
//
// Package props/propstest runs all of it as tests and benchmarks.
//
// # Reproduction
//
// Sequence i of a run with seed s is the only sequence of a run with seed s+i. The
// generator draws from math/rand seeded with that number, whose values never change, so a
// seed means the same sequence on every machine.
package props
