// Package figure makes figures for papers from results of commands, in JSON or CSV.
//
// [Read] takes a file, [Draw] makes a chart of several. What can be drawn follows from what the
// results are of: [Kinds] lists the kinds with the results that each takes, [Results] the results.
// Values are figures by the names that results have, as in
// package resultdiff, so that a figure which a command learns can be drawn at once.
package figure
