// Package front holds the parts that every strategy needs at its interface: the table of live blocks,
// [Ledger], and [CompareStats], which compares the counters with the walk so that Check finds a wrong counter
// at the step that caused it.
package front
