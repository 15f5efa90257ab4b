// Package invariants is the gate in front of checks that are too dear for every run.
//
// The checks run in builds with the tag "invariants" (go test -tags invariants ./...).
// [Enabled] is a constant, so in an ordinary build the compiler removes them.
package invariants
