// Package diff compares two results of this program, figure by figure, and judges the change.
//
// [Read] takes the JSON of any command whose result holds runs; its field "schema" decides how.
// [Compare] matches the runs of two results and tells which figures differ. [Condition] is what a
// build must not do, such as "min_capacity_bytes>+2%"; [Diff.Judge] applies them.
//
// # Runs
//
// A run is known by its trace (name and hash), its strategy and its configuration. Those that agree
// in all of it are matched first, then those whose trace has another name, another content, and
// last those of another configuration. Two results of one run each are matched whatever
// they are of. What does not agree is told with the pair.
//
// # Figures
//
// Every field of a run that is not its name is a figure. Fields of an object are named with a point
// between, as in "latency.alloc.p50_ns"; a list is one figure, which is the same or not. Units
// follow from names: what ends in _bytes is bytes, what ends in _ns, or counts ns, is time.
//
// Times that were measured differ between any two runs of the program. They are marked, and make
// no difference of their own: two results that differ in nothing else are equal.
//
// # Cost
//
// A result is held in memory as a whole, with about 200 bytes for each of its values. Comparing is
// linear in the number of figures, but for sorting them.
package diff
