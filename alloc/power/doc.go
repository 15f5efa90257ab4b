// Package power holds the optional abilities of strategies. Each power is a small interface with a
// function of this package. Without the power the function computes the result slowly over Walk, or
// returns [alloc.ErrUnsupported]. [Has] reports whether a strategy has a power; a type assertion
// does not, because the power may belong to a strategy behind a [Wrapper].
//
// A new power is an interface, its function and one row of the table of powers.
package power
