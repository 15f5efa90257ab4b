// Package promise holds what a configuration may promise beyond the rules that every strategy
// keeps: which free chunks merge, which requests are granted, which alignments are supported. The
// property suite checks each strategy against the [Set] of its configuration.
package promise
