// Package power holds what only some strategies can do. Each power is a small interface, and a
// function of this package uses it. Without the power the function takes a slow and obviously right
// way over Walk, or returns [alloc.ErrUnsupported]. [Has] reports whether a strategy has a power; a
// type assertion does not, because a wrapper has the methods of all powers.
//
// A new power is an interface, its function, one row of the table of powers and one method of
// wrap.Forwarder.
package power
