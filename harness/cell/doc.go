// Package cell keeps results that need to be computed only once. A cell is one unit of work: a
// trace through a strategy with one configuration on one device, or one replay of it. [Key]
// identifies its inputs and [Recall] returns its result from a [Store], or computes and stores it.
//
// Results of earlier programs stay valid as long as the versions in the key are the same:
// [Key].Semantics changes when a strategy places blocks differently, and [Key].Engine when a
// replay or a search yields other figures. So refactoring keeps the results, and a strategy that is
// added later costs only its own cells.
package cell
