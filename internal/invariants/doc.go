// Package invariants switches on the checks that are too expensive for every run.
//
// The checks run in builds with the tag "invariants" (go test -tags invariants ./...).
// [Enabled] is a constant, so in an ordinary build the compiler removes them.
package invariants
