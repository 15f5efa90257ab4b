// Package planted is the switch of the planted bugs: known bugs that the property suite must
// find. They show that the suite detects errors.
//
// The ordinary source has no bugs to switch on. They are data in props/planted/bugs, which the
// command props/planted/bugs/overlay turns into an overlay for the go command. In a build with that
// overlay [Enabled] is true, and each bug waits behind a condition such as
//
//	if planted.Is("bfc/lost-remainder") {
//
// that holds once [Set] has named the bug.
package planted
