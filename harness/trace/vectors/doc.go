// Package vectors finds the golden vectors: traces with the answers of the original allocators. It
// is for tests: a strategy that claims the placements of an original replays each trace and
// compares.
//
// The vectors are in testdata/vectors of the repository, whose README describes the files. This
// package maps the options of the originals to configurations of the strategies and of the
// simulated device. It does not depend on any strategy.
package vectors
