// Package power holds what only some strategies can do. Each power is a small interface, and a
// function of this package uses it. Without the power the function takes a slow and obviously right
// way over Walk, or returns [alloc.ErrUnsupported]. [Has] reports whether a strategy has a power; a
// type assertion does not, because the power may be that of a strategy behind a [Wrapper].
//
// A new power is an interface, its function and one row of the table of powers.
package power
