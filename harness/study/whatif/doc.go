// Package whatif finds the settings or allocators that would have saved a recorded run, and the
// smallest sufficient card.
//
// # Replays
//
// [Survey] turns recorded refusals into requests: they must be served too, and count in the lower
// bound. [Search] replays the trace through the recorded settings and every point of a grid, which
// [ReadGrid] reads. Points that cannot differ on the trace are replayed once: equal configurations,
// and ones their strategy reduces to equal ones (see [setting.ReducedConfig]).
//
// # Measurements
//
// Each point is replayed once with all figures, on the card if it is known: this decides whether it
// completes on the card. To find the minimum capacity, the interval between the live bytes and the
// reserved peak is bisected, because a failed replay, or a strategy that reserves everything at
// once, shows no need.
//
// # Cost
//
// Replays are limited by a budget of events: one replay for each setting, an eighth of that again,
// and for short traces up to ten million events, so that their search completes. The share of
// points that were not replayed is spent on minima too. A failed replay is charged for the events
// it replayed. A strategy that ignores the capacity (see [setting.UnboundConfig]) is known to
// complete with its reserved peak. A strategy that is [power.Spanned] is not replayed at a capacity
// at which an earlier replay would have been the same; the budget counts such a replay, so that the
// figures are those of a search that makes it.
//
// Probes go first to the settings that users of the recorded framework can choose, the best of them
// first. An unfinished minimum is reported as an interval. The choice of probes depends on the
// trace and the grid only, so that all figures except times are the same on any number of cores.
//
// # Shares
//
// A setting that limits a strategy to a share of the card (see [setting.ShareConfig]) is compared
// by the bytes of its share. If it completes on the card, the least share that completes is found
// by bisection in hundredths of the card. These replays are beyond the budget, which grows by them.
//
// # Answers
//
// [AnswerOf] formulates the outcome, package harness/show/report prints it. [Recorded] is the
// recorded run according to the file; gaps in it are part of the answer.
//
// [Sleeping] finds the part of a card that another program leaves while it sleeps; the search then
// takes this part for the card.
//
// [FleetOf] combines the searches of the ranks of one run into one answer for all. [AcrossReleases]
// compares the releases of the recorded framework instead of settings.
package whatif
