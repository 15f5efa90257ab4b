// Package bugs holds the bugs that are planted into the strategies and into harness/remat, as data:
// one text file for each package that has bugs, and wrapped.txt for bugs in wrappers around a
// strategy.
//
// A file begins with its settings, each a strategy with its configuration on a simulated
// device. A bug has one or more records, each with a setting, and is followed by the edits of
// the source that plant it. Several bugs share an edit if they change the same lines.
//
//	setting growth: bfc:growth {"limit":16777216} on {"capacity":12582912,"align":256}
//
//	bug bfc/lost-remainder: the remainder of a split is in no bin
//	in growth breaks I7 I9 B3
//	    a 1
//	edit strategies/bfc/search.go (*Allocator).trim
//	 		rest := a.split(h, n)
//	+		if planted.Is("bfc/lost-remainder") {
//	+			return
//	+		}
//	 		a.shelveRemainder(rest, a.chunks.rows[rest].next)
//
// A record names, in this order and on one line: the setting; after "breaks" the invariants that
// the calls below it break; after "by" the judge, if it is not generated calls alone: faults, heap,
// relations, callers, logs, misled or trained; after "refusing" the number of the device call that
// the device refuses when the calls are run. The indented calls are the least that show the bug.
// For logs they are lines of an op log, and the strategy is remat, on {}.
//
// An edit names a file and a function. Its lines begin with a space for context, a minus for
// lines taken out, and a plus for lines put in. The lines of context and those taken out must
// occur exactly once in the function, white space included.
package bugs
