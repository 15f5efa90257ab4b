// Package vectors finds the golden vectors: traces of ours with the answers that the
// original allocators gave to them. It is for tests; a strategy that claims to place
// blocks as an original does replays each trace and compares.
//
// The vectors lie in testdata/vectors of the repository, which tells what each line means.
// This package knows how the options of the originals map to configurations of our
// strategies and of the simulated device, and it knows no strategy.
package vectors
