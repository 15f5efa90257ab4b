// Package figure makes figures for papers from results: the JSON of replay, compare, whatif and bench,
// and the CSV of compare and whatif.
//
// [Read] takes a file, [Draw] makes a chart of several. What can be drawn follows from what the
// results are of; [Kinds] lists it. Values are figures by the names that results have, as in
// package resultdiff, so that a figure which a command learns can be drawn at once.
package figure
