// Package whatif tells which setting or which allocator would have carried a run, and on how small
// a card.
//
// # What is replayed
//
// [Want] makes requests of the refusals that a trace records: what the program was refused is what
// has to be carried, and the lower bound has it too. [Search] then replays the trace through every
// point of a grid, which [ReadGrid] reads, and through the recorded settings. Points that cannot
// differ on the trace are replayed once: those with equal configurations, and those that their
// strategy reduces to equal ones (see [setting.ReducedConfig]).
//
// # What is measured
//
// Each point is replayed once with all figures, on the card if that is known: whether it completes
// there is the verdict. What fails, and what an allocator takes all of at once, says nothing about
// what is needed, and neither does a completed replay alone. So the minimum capacity is searched,
// by halving, from what the strategy held down to the live bytes.
//
// # What it costs
//
// Replays are counted in events and bounded: one for each setting that is asked for, an eighth of
// that again, and for short traces up to ten million events, so that they are searched to the end.
// What the settings do not take that decide like others is spent on minima too. A replay that fails
// is charged what it replayed. A strategy that does not look at the capacity (see
// [setting.UnboundConfig]) is known to do with what it held. Probes go first to what the users of
// the recorded framework can choose, the best of it first. A minimum that was not found shows as a
// bracket. Which probes are made depends on the trace and the grid alone: the figures, times
// excepted, are the same on any number of cores.
//
// # What is told
//
// [Tell] puts the outcome into words, package harness/show/report prints it. [Recorded] is what the
// file says of the run that was recorded; what it cannot tell is part of the answer.
package whatif
