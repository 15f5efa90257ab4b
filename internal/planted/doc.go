// Package planted puts known bugs into the strategies, so that the property suite can show
// that it finds them. A suite that finds nothing proves nothing.
//
// In a build with the tag "planted" each bug waits behind one line such as
//
//	if planted.Enabled && planted.Is("bfc/lost-remainder") {
//
// and is there once [Set] names it. In any other build [Enabled] is a constant false: the
// compiler removes the line before it counts what a function costs, so that nothing of it
// is left, neither code nor text.
//
// [Bugs] lists them all, with the invariants that each breaks and the least calls that
// show it.
package planted

// ID names a bug: the package that it is in, a slash, and what goes wrong.
type ID string

// None is the name of no bug.
const None ID = ""
