// Package addrlist keeps values by address, in order, for tables of regions.
//
// # Structure
//
// The entries lie in leaves, sorted, at most 64 in each. The first address of every leaf
// lies in a slice of its own, so a search is a binary search among the leaves and one in a
// leaf. A full leaf is cut in half; a leaf that has become small joins a neighbour. A leaf that
// is full at the upper end stays full, so entries that come in order fill their leaves.
//
// A list of up to 64 entries is one leaf, which is a sorted slice that starts small and
// doubles; it costs what such a slice costs. Beyond that a call moves at most 64 entries
// and, when a leaf is cut or joined, the rows of the leaves above it, 40 bytes each. In the
// middle of a list 16 calls or more lie between two of those; at the upper end they move
// nothing.
//
// # Bounds
//
// Each leaf carries a number that its user chooses, its bound: no entry of the leaf has
// more of something than that. A search for much of it skips the leaves whose bound is too low.
// The list keeps the promise while entries move: both halves of a leaf inherit its bound, and
// a joined leaf has the larger one. Leaves stand in groups of 64 with a bound of the group.
//
// Bounds may be too high, never too low: a user raises one at once, and lowers it
// when it has looked at all entries of the leaf for nothing. So removing the largest entry
// costs no look for the second largest.
//
// # Order
//
// Entries are placed where the caller says. Invariant: addresses ascend, if the caller says
// what Search answers.
package addrlist
