// Package props says what every allocator must do, and proves it by driving one.
//
// # Parts
//
//   - An [Op] is one call, legal or not. Every sequence of them can be run, so a failing
//     sequence stays runnable whatever is cut out of it.
//   - [Sequences] generates them and knows how to make them smaller; [Shrink] goes on
//     where the generator stops.
//   - The [Model] is the reference: a list of live blocks and sums over it.
//   - The predicates ([Tiling], [Regions], [Coalescing] and so on) are pure functions of
//     what a strategy shows. Each names the invariant it checks and the two things that
//     disagree. docs/invariants.md lists them all.
//   - [Promises] are what one strategy, in one configuration, keeps beyond the core that
//     every strategy keeps.
//   - [Verify] runs generated sequences and judges every answer and the state after every
//     step. [VerifyFaults] lets the device refuse each of its calls in turn. A [Failure]
//     carries seed, step, invariant and the shrunken sequence as a trace.
//
// Package props/propstest runs all of it as tests and benchmarks.
//
// # Reproduction
//
// Sequence i of a run with seed s is the only sequence of a run with seed s+i. The
// generator draws from math/rand seeded with that number, whose values never change, so a
// seed means the same sequence on every machine.
package props
