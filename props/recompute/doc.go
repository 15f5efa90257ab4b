// Package recompute checks the invariants of runs within a memory budget
// (harness/remat) with generated op logs.
//
// A [Log] is a training step as text, with its budget. [Draw] and [DrawChain] draw one. A [Subject]
// is a configuration of runs; its method Check runs a log under an audit, which follows the events
// of the run, and compares further runs of the same log. [Verify] does so for many logs and shrinks
// the first that breaks an invariant.
package recompute
