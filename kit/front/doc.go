// Package front holds the parts that every strategy needs at its interface: [Front], the counters,
// refusals and limits, with the [View] that a strategy embeds; [Ledger], the table of live blocks;
// and [CompareStats], which compares the counters with the walk so that Check finds a wrong counter
// at the step that caused it.
package front
