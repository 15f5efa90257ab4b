// Package tidy consists of tests of the repository's rules.
//
// A Repository is a parsed source tree. A Rule looks at one and returns what breaks it.
// The tests run every rule over the repository, and every rule over a small tree that breaks it,
// because a rule that cannot fail checks nothing.
//
// The rules read syntax only, so they see every file under any build tags. One rule needs types and
// checks the strategies and their imports only. Exceptions stand in one table, each with its
// reason; an exception that excuses nothing is itself a failure.
package tidy
