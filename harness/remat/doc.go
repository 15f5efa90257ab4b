// Package remat simulates dynamic tensor rematerialization (DTR): it runs the log of a training
// step within a memory budget, evicts tensors when memory is short, and recomputes an evicted
// tensor when an operator reads it.
//
// A storage is the unit of eviction; a tensor is a view of a storage. A storage is dead when the
// program has released its last reference, pinned when it must stay resident, and locked while an
// operator reads it.
//
// # Logs
//
// [ReadFile] reads the log format of DTR's authors: JSON lines of operators, sizes, views,
// mutations, copies and releases. It also reads DTRLOG/1, which adds the instruction DROP and
// optional fields of CALL and MUTATE: FLOPS, BYTES, WORKSPACE, RECOMPUTABLE, STREAM and SEED.
//
// ReadFile lowers a log to a [Schedule] of five kinds of steps. Its operators have no side effects:
// a mutation becomes an operator with a new output, and the mutated name refers to that output from
// then on. The exception is a fixed storage, which is never evicted, such as a weight that an
// optimizer updates: it is written in place, after every tensor whose recomputation needs the old
// content has been pinned. A [Builder] makes schedules without a log. [Batches] predicts
// the schedule of a program at any batch size from logs of two.
//
// # The run
//
// [Run] reproduces the simulator published by DTR's authors step by step: the clock starts at 1,
// and storages are locked, listed as candidates, and chosen among equal scores in the same order.
// An operator whose inputs are missing recomputes them first, depth first on an explicit stack,
// because chains can be arbitrarily deep. Scores are quotients of integers, rounded once.
//
// A heuristic ([Heuristics]) chooses the victims, and a liveness policy ([Livenesses]) decides what
// happens to dead storages. A [Memory] places blocks; a [Counter] only counts bytes.
//
// # Addresses
//
// [Over] returns a [Space]: a [Memory] that places blocks by a strategy, on a simulated device as
// large as the budget, rounded down to the granularity of the device. It uses only the public
// contract and the strategy's powers. The outputs of an operator are allocated one by one, in
// order. A [Result] counts bytes of tensors over every memory, so runs over a Space and over a
// [Counter] can be compared line by line.
//
// A [Trigger] decides when victims are chosen, a [Ladder] what to try when a request is refused.
// The refusal that ends a run is classified by three figures at that moment: the free bytes,
// including free device memory; the size of the block that an empty strategy would grant; and the
// requested bytes of live blocks.
//
// [Defrag] moves blocks, even of locked storages, while no operator runs. A move does not
// count as a use, and its time is kept apart from the clock. Blocks slide if the strategy can slide
// them. Otherwise all blocks are freed and reallocated: by address, or, with bounce, oldest storage
// first after cached memory was released. If a block then fits nowhere, all are reallocated largest
// first; if that fails too, the run ends, and the verdict is about the block that has no place. A
// copy between overlapping ranges costs as much as any other, without the buffer it would need.
//
// The heuristic coop evicts adjacent blocks together, see [Space.Window]. If the strategy has no
// such window, or the memory no addresses, coop scores single storages as eq does. Its source has
// one region; here a window lies in one of several regions, obeys the strategy's rules of merging,
// and competes with emptying whole regions. The heuristic coop-ends also places a storage at the
// high end of memory if its operator costs more per byte than the average.
//
// # Surprises of the simulator
//
// They are reproduced because published figures depend on them:
//
//   - Under eq, the outputs of an operator join the graph before the operator has run, each with an
//     empty class. When it has run, their cost is subtracted from classes that never contained it.
//   - Under estar and msps, the evicted neighborhood of a storage is rebuilt only when a storage at
//     its edge is restored. Until then it lacks the cost that a new view adds to its storage.
//   - Under banish, an operator that has run unlocks its inputs one by one. If that frees an input
//     permanently, the next input is skipped and stays locked.
//   - All inputs of an operator count as used before the first of them is recomputed. Recomputing
//     an input does not count as a use of it.
//
// eq-mended is eq without the first surprise.
//
// # Choices
//
// The zero value of each choice in a [Config] reproduces the simulator. [Sampling] and [Minimum]
// restrict the candidates for eviction; before a run fails, all candidates are considered.
// [ParentOrder] is the order in which missing inputs are recomputed. EagerInRemat evicts a dead
// storage that was restored for a recomputation right after its last read there, so a chain is
// recomputed in the memory of its widest point instead of its length.
//
// # MegEngine
//
// MegEngine is reproduced by the heuristic mge with the liveness mge-refcount and, optionally,
// Minimum.Cut of 1 MiB, SampleMGE and [Quirks]. Its defects are mended unless a quirk restores
// them. Its score counts bytes moved instead of time, so it can run logs without times; the clock
// of the run still counts time. MegEngine has no views: its tensors correspond to storages here.
// Two of its habits are triggers: reserve evicts although the device has free memory, and threshold
// does not bound the memory in use.
//
// Outputs that are resident when their operator reruns keep their blocks, in MegEngine as in the
// simulator.
//
// # Swapping
//
// With the setting evict of a heuristic, or the step swap of a ladder, victims are copied to the
// host. The link to it has an engine for each direction, which copies one storage at a time while
// operators run; its bandwidth is the link of a simulated card. Memory is free when the copy to the
// host has ended. An operator waits for memory and for its inputs, which adds to the clock. A
// storage is copied back when an operator is about to read it, or earlier, while another operator
// runs: as late as the step that reads it next permits, and only into free memory. If it is read
// before its copy to the host has ended, it keeps its memory.
//
// With evict=cheaper a victim is swapped out if the expected wait is less than the time to
// recompute it now. The wait is the one for memory, unless the trigger evicts ahead, and the part
// of the copy back that does not fit before the next read. Heuristics that divide a time of
// recomputation use the lesser of the two instead. Constants and other storages that cannot be
// recomputed can be swapped only. Storages without references are dropped. In the sense of
// heuristics, liveness and steps a swapped storage is resident; a step that drops it, and its last
// release, give up the copy. At the end storages may be on the host.
//
// # Permanent frees
//
// The liveness policies banish, mge-refcount and detach free storages permanently. banish pins the
// storages computed from them, detach also recomputes evicted ones, and mge-refcount pins
// nothing. If the producer of a permanently freed storage reruns, mge-refcount and detach discard
// that output; under banish it returns, as in the simulator, and joins no class. MegEngine applies
// its policies to tensors; here they apply to storages, because schedules have views.
//
// # Invariants
//
// Package props/recompute checks them with generated logs and budgets.
//
// Invariant M1: resident bytes and workspace never exceed the budget. Their peak is in the result,
// and blocks are held for exactly the resident bytes, and those on their way to the host.
// Invariant M2: an operator reads resident tensors in memory only. A tensor that is computed again
// has the value of its first run, and no tensor is read after an in-place write to its storage.
// Invariant M3: a storage that cannot be recomputed, or that a step keeps, is not evicted while it
// has a reference.
// Invariant M4: a storage is freed for good at most once, after its last reference was released,
// and no rerun reads it.
// Invariant M5: operators run first in the order of the log, and counts, bytes and times of the
// result equal the sums over the events.
// Invariant M6: a run ends for lack of memory only if nothing is left to evict.
// Invariant M7: a run within its own peak without a budget evicts nothing for memory and
// recomputes no more than that run.
// Invariant M8: the same log, budget and configuration give the same result.
// Invariant M9: under detach exactly the storages without a reference have been freed for good.
// Invariant M10: a drop evicts the storage at once, unless it is kept, and no other.
// Invariant M11: without a budget and drops, banish and detach do the same.
// Invariant M12: under sublinear no operator runs more than twice.
// Invariant M13: sublinear completes a chain of n results of one byte within 2√n + 4 bytes.
// Invariant M14: chain-optimal completes every log that sublinear completes, and takes no longer.
// Invariant M15: settings of a heuristic at their defaults change nothing.
// Invariant M16: if all operators take four times as long, the events are the same, unless the
// heuristic has settings.
// Invariant M17: each byte that is swapped out comes back, keeps its memory, is given up, or is on
// the host at the end.
// Invariant M18: the host holds at most its capacity.
// Invariant M19: copies in one direction take their time, one after the other, and an operator runs
// after the copies of its inputs. Over an infinite link no operator waits.
// Invariant M20: if victims are swapped only, nothing is recomputed, unless a step drops it or the
// liveness policy restores it.
//
// M6 holds for the policies none, eager and mge-refcount; banish and detach keep more than a log
// does. M7 needs a trigger that waits for lack of memory. M13 and M14 hold without Minimum.Cut,
// which keeps small results. M14 is not true of heuristics: they may evict a result between two
// reads, which no plan does.
//
// # Sources
//
// Kirisame, Lyubomirsky, Haan, Brennan, He, Roesch, Chen, Tatlock: Dynamic Tensor
// Rematerialization, ICLR 2021, and its simulator in github.com/uwsampl/dtr-prototype. For
// mge-refcount, mge and mge-static: MegEngine 1.6 and later; for oneflow: OneFlow. dte is the score
// of MegTaiChi (Hu et al., ICS 2022). coop: Zhang, Ma, Liu, Yuan, Coop: Memory is not a Commodity,
// NeurIPS 2023. These were implemented from descriptions, and no figures are compared. belady is
// Belady's rule.
package remat
