// Package tidy keeps the rules of the house true.
//
// A [House] is a parsed source tree. A [Rule] looks at one and returns what breaks it, as
// [Finding]s. The test of this package runs every rule over the repository, and every
// rule over a small tree that breaks it, because a rule that cannot fail says nothing.
//
// The rules read syntax only, so they see every file whatever its build tags; the one
// that needs types checks those of the strategies and what they import, nothing else.
// What is excused stands in one table, each entry with its reason, and an entry that no
// longer excuses anything is itself a failure.
package tidy
