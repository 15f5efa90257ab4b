// Package board ranks strategies over the traces and op logs of merged sweeps, in tracks by
// constraint and without a single score.
//
// [Collect] groups results by strategy and settings, and results of logs by heuristic and ladder
// too. The caller may then set [Entry.Unlisted], for a strategy that fails its check. [Board.Probe]
// finds the device calls that each makes on traces, from which its tracks follow. [Board.Rank]
// makes the tracks: places with bootstrap intervals, performance profiles (Dolan and Moré,
// "Benchmarking optimization software with performance profiles", 2002), and the Pareto front of
// bytes and device calls, or of bytes and time on logs. docs/board.md is the manual.
package board
