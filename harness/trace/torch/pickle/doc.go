// Package pickle reads the steps of a Python pickle that holds data and nothing else.
//
// A pickle is a program for a small machine. What builds lists, dictionaries, tuples, strings and
// numbers in protocols 2 to 5 is read; whatever could import, call or build anything else is
// refused by name. The package takes the bytes apart and leaves the machine's stack and memo
// to its caller. It keeps no more than one string at a time, and no length that a
// file claims is believed before the bytes have come.
package pickle
