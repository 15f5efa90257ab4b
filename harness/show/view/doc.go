// Package view serves pages of replays to a browser on the same machine, and the data the pages
// request.
//
// A page is a page of package page with a picture of the whole run. When the reader zooms in, its
// script requests the blocks of a window ([page.BlockFile.Find]), curves in finer buckets, or the
// state after any event, which replays the trace up to there. Only the time of that replay grows
// with the length of the trace.
//
// # Access
//
// Names of files, tags and stacks are private. A [Server] therefore requires a secret token in the
// path, and rejects requests that a foreign site could make a browser send: a Host header other
// than the loopback interface (DNS rebinding), requests that the browser marks as cross-site, and
// methods other than GET and HEAD. No other origin may read its responses. Request paths are never
// file paths.
//
// # Stored replays
//
// [Replay] draws a trace in up to [fineBuckets] buckets and writes all blocks of each run to a
// file. A [Cache] stores both under a hash of the trace and the settings of the run, so that a long
// trace opens at once the next time.
package view
