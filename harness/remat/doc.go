// Package remat trades time for memory: it runs the log of a training step within a budget, evicts
// tensors when memory is short and computes them again when they are read. This is dynamic
// tensor rematerialization (DTR).
//
// # Logs
//
// [ReadFile] reads the log of the authors of DTR, JSON lines of operators, sizes, views, mutations,
// copies and releases, and DTRLOG/1, the same lines with more optional fields: FLOPS, BYTES,
// WORKSPACE, RECOMPUTABLE, STREAM and SEED of a CALL or MUTATE. It lowers them to a [Schedule] of
// four kinds of steps, in which every operator is functional: a mutation becomes an operator with
// a new output, and its name is bound to that; what stays for ever and cannot be made again, such
// as the weights that an optimizer steps, is written in its place, and what could only be made
// again of the old content is pinned before that. A [Builder] makes schedules without a log.
//
// # The run
//
// [Run] follows the runtime of the simulator that the authors published, step by step: the clock
// that starts at 1, the order of locks, the order of the pool, which victim wins a tie. An operator
// whose inputs are gone computes them first; that recursion keeps a stack of its own, so that
// memory alone bounds the length of a chain. Scores are quotients of whole numbers, rounded once.
//
// What is a choice lies in tables: [Heuristics], which victim is worth least; [Livenesses], what
// becomes of tensors that nobody refers to. Where blocks lie is the business of a [Memory]; a
// [Counter] counts bytes and knows no addresses.
//
// # Addresses
//
// [Over] makes a [Memory] of any strategy: a [Space], on a simulated device as large as the budget.
// It calls the public contract only, and the powers that a strategy has. Outputs are asked for one
// by one, in their order; what is accounted stays what it is over a [Counter], so that both can be
// compared line by line. A budget is rounded down to what devices hand out.
//
// A [Trigger] says when victims are chosen, a [Ladder] what else is tried when a request has no
// place. The refusal that ends a run is judged there and then: by the free bytes, those that the
// device could still give included, by the size of the block that the strategy makes of the request
// when it is empty, and by the bytes that live blocks were asked for.
//
// [Defrag] moves blocks. They lie still while an operator runs, so locked ones move too; their age
// stays, and the time is on a clock of its own. Where a strategy can slide blocks it is left to
// that. Otherwise all are freed and asked for again, by address, or after all that was cached went
// back, by age. That may fail: then the largest come first, and if that fails too the run ends with
// the verdict on the block that has no place. What a copy would have to care about, ranges that
// overlap each other in a circle, has no cost here.
//
// The heuristic coop evicts what lies side by side: see [Space.Window]. Where there is no such
// window it is eq, as it is over a memory without addresses. Other than in its source, a window
// lies in one region of several, holds what the strategy merges, and competes with emptying whole
// regions. coop-ends adds that storages whose operator costs more for each byte than all do
// together are asked for at the other end.
//
// # What the simulator does that one would not guess
//
// It is reproduced, because the figures that others published hang on it:
//
//   - Under eq, the outputs of an operator are neighbours before it has run, with a class of their
//     own that holds nothing. When it has run, a cost is subtracted that was never added.
//   - Under estar and msps, regions are found anew when something at their edge comes back. What a
//     new view adds to the cost of its storage, they see only then.
//   - Under banish, an input that is freed for good while an operator lets go of its inputs hides
//     the one behind it from that loop, and so keeps it locked.
//   - All inputs of an operator count as used before the first of them is made again, and what is
//     made again does not count as used by that.
//
// eq-mended is eq without the first of these.
//
// # Choices
//
// The zero value of each choice in a [Config] is what the simulator does. [Sampling] and [Minimum]
// look at fewer candidates, and fall back to all of them before a run fails. [ParentOrder] says
// which of several missing inputs is made first: those that are there stay locked meanwhile.
// EagerInRemat evicts dead storages that came back for a replay as soon as they were read, so that
// a chain takes the room of its widest place.
//
// # MegEngine
//
// Its mode is the heuristic mge with the liveness mge-refcount and, where that is wanted,
// Minimum.Cut of a mebibyte, SampleMGE and [Quirks]: what it does by mistake is mended unless it is
// asked for. Its score counts bytes moved in place of time, so a log without times will do; the
// clock of the run still counts time. Storages are what it calls tensors; it has no views. That it
// looks for memory in the pool of a stream first, and takes its threshold for a hint, are triggers
// of a run.
//
// Outputs that are there when their operator runs again keep their blocks, in MegEngine as in the
// simulator.
//
// # Freed for good
//
// The policies banish and mge-refcount free storages for good. Under mge-refcount nothing is pinned
// by that, and what an operator makes again of a freed output is thrown away. The policy is
// MegEngine's, told by storages here, because these schedules have views.
//
// # Sources
//
// Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock: Dynamic Tensor
// Rematerialization, ICLR 2021, and its simulator in github.com/uwsampl/dtr-prototype. For
// mge-refcount, mge and mge-static: MegEngine 1.6 and later; for oneflow: OneFlow. Their rules are
// known here from descriptions, and no figures of theirs are compared. dte is what MegTaiChi (Hu et
// al., ICS 2022) calls its score; belady is Belady's rule. coop: Zhang, Ma, Liu, Yuan, Coop: Memory
// is not a Commodity, NeurIPS 2023, told by a description too.
package remat
