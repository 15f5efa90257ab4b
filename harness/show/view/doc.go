// Package view serves pages of replays to a browser on the same machine, and what they ask for.
//
// A page is that of package page, with a picture of the whole run. Its script asks for more when
// the reader looks closer: for the blocks of a window ([blocks.File.Find]), for the curves in more
// buckets, and for the state after any event, for which the trace is replayed up to there. Nothing
// of that grows with the length of a trace but the time of a replay.
//
// # Who is answered
//
// Names of files, tags and stacks are nobody else's business, so a [Server] is for those who know
// the random words in its address, and refuses all that a foreign site could make a browser ask: a
// Host header that names anything but the loopback interface (a name that was pointed there later),
// requests that a browser says come from another site, and methods that are not for reading. It
// allows no origin to read its answers but its own. No path of a request becomes a path of a file.
//
// # Replays that are kept
//
// [Replay] draws a trace in as many buckets as [fineBuckets] and writes all blocks of each run to a
// file. With a [Cache] both are kept, and found again by the hash of the trace and the settings of
// the run, so that a long trace opens at once the next time.
package view
