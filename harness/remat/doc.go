// Package remat simulates dynamic tensor rematerialization (DTR): it runs the log of a training
// step within a memory budget, evicts tensors when memory is short, and recomputes them when they
// are read.
//
// # Logs
//
// [ReadFile] reads the log format of DTR's authors, JSON lines of operators, sizes, views,
// mutations, copies and releases, and DTRLOG/1, the same lines with optional fields: FLOPS, BYTES,
// WORKSPACE, RECOMPUTABLE, STREAM and SEED of a CALL or MUTATE, and the instruction DROP. It lowers
// them to a [Schedule] of a few kinds of steps. Every operator in it is functional: a mutation
// becomes an operator with a new output, to which the name is rebound. Only fixed storages that
// cannot be recomputed, such as weights that an optimizer steps, are written in place; tensors
// whose recomputation needs the old content are pinned first. A [Builder] makes schedules without a
// log.
//
// # The run
//
// [Run] follows the simulator published by DTR's authors step by step: the clock that starts at 1,
// the order of locks, the order of the pool, and how ties between victims are broken. An operator
// whose inputs are missing recomputes them first; this recursion uses an explicit stack, so that
// chains may be arbitrarily deep. Scores are quotients of integers, rounded once.
//
// Choices are tables: [Heuristics] choose victims, [Livenesses] decide about dead tensors. A
// [Memory] places blocks; a [Counter] only counts bytes.
//
// # Addresses
//
// [Over] makes a [Memory] of any strategy: a [Space] on a simulated device as large as the budget.
// It uses only the public contract and the strategy's powers. Outputs are allocated one by one, in
// order. The accounting is the same as over a [Counter], so that the two can be compared line by
// line. Budgets are rounded down to the granularity of devices.
//
// A [Trigger] decides when victims are chosen, a [Ladder] what happens when a request is refused.
// The refusal that ends a run is classified at that moment, from three figures: the free bytes,
// including free device memory; the block size that an empty strategy would grant; and the
// requested bytes of live blocks.
//
// [Defrag] moves blocks while no operator runs, locked ones too. Their age is kept, and the time is
// accounted apart. A strategy that can slide blocks does so. Otherwise all blocks are freed and
// reallocated, by address, or by age after cached memory was released. If that fails, they are
// reallocated largest first; if that fails too, the run ends with a verdict on the block without a
// place. Copies between overlapping ranges that would need a buffer are not charged for it.
//
// The heuristic coop evicts adjacent blocks, see [Space.Window]. Without such a window, or without
// addresses, it acts as eq. Unlike in its source, there may be several regions, a window lies in
// one of them, follows the merging rules of the strategy, and competes with emptying whole regions.
// coop-ends places storages at the high end if their operator costs more per byte than average.
//
// # Surprises of the simulator
//
// They are reproduced because published figures depend on them:
//
//   - Under eq, the outputs of an operator become neighbours before it has run, with an empty class
//     of their own. When it has run, a cost is subtracted that was never added.
//   - Under estar and msps, regions are rebuilt when a storage at their edge is restored. Only then
//     do they see the cost that a new view adds to its storage.
//   - Under banish, freeing an input for good while an operator unlocks its inputs skips the next
//     input, which stays locked.
//   - All inputs of an operator count as used before the first of them is recomputed.
//     Recomputation itself does not count as use.
//
// eq-mended is eq without the first of these.
//
// # Choices
//
// The zero value of each choice in a [Config] reproduces the simulator. [Sampling] and [Minimum]
// restrict the candidates, and fall back to all of them before a run fails. [ParentOrder] is the
// order in which missing inputs are recomputed; resident ones stay locked. EagerInRemat
// evicts dead storages that were restored for a replay after their last read, so that a chain needs
// the memory of its widest point only.
//
// # MegEngine
//
// Its mode is the heuristic mge with the liveness mge-refcount and, optionally, Minimum.Cut of
// 1 MiB, SampleMGE and [Quirks]. Its defects are mended unless a quirk asks for them. Its score
// uses bytes moved instead of time, so it also reads logs without times; the clock of the run still
// counts time. MegEngine has no views; its tensors are our storages. Its search of the stream's
// pool before the device, and its threshold that is only a hint, are triggers.
//
// Outputs that are resident when their operator reruns keep their blocks, in MegEngine as in the
// simulator.
//
// # Freed for good
//
// The policies banish, mge-refcount and detach free storages for good. mge-refcount pins nothing
// when it does so; detach restores and pins all consumers. Both discard freed outputs when their
// operator reruns; under banish they return, as in the simulator, and join no class. MegEngine
// applies its policies to tensors; here they apply to storages, because schedules have views.
//
// # Sources
//
// Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock: Dynamic Tensor
// Rematerialization, ICLR 2021, and its simulator in github.com/uwsampl/dtr-prototype. For
// mge-refcount, mge and mge-static: MegEngine 1.6 and later; for oneflow: OneFlow. These were
// implemented from descriptions, and no figures are compared. dte is the score of MegTaiChi (Hu et
// al., ICS 2022); belady is Belady's rule. coop: Zhang, Ma, Liu, Yuan, Coop: Memory is not a
// Commodity, NeurIPS 2023, also implemented from a description.
package remat
