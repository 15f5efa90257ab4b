// Package propstest runs the property suite of package props as tests and benchmarks.
//
// The conformance test of a strategy is a list of subjects and one call:
//
//	func TestConformance(t *testing.T) {
//		propstest.Run(t, subject("default", Config{}), subject("growth", Config{Growth: true}))
//	}
//
// Each subject is verified bare, with the device refusing each of its calls in turn, with
// blocks that are filled and compared, and inside the wrappers of package alloc. A failure prints
// seed, step and invariant, and leaves the shrunken sequence as a trace file that a replay repeats.
//
// Flags: -props.tests is the number of sequences for each subject, -props.ops their
// length, -props.seed the seed of the first. More than four subjects share the sequences of
// four, and each has a quarter at least; with -short each has a quarter. A failure prints the seed
// of its sequence: -props.tests=1 -props.seed=N runs it alone, given the same -props.ops.
package propstest
