// Package diff compares two results of this program figure by figure, and judges the changes.
//
// [Read] reads the JSON result of any command that lists runs; its field "schema" selects the form.
// [Compare] pairs the runs of two results and lists the figures that differ. [Condition] is a
// failure criterion, such as "min_capacity_bytes>+2%"; [Diff.Judge] applies conditions.
//
// # Runs
//
// A run is identified by its trace (name and hash), strategy and configuration. Runs that agree in
// everything are paired first, then runs whose trace differs in its name, then in its content, and
// last runs that differ in configuration. If each result has one run, they are always paired. Each
// pair lists its differences.
//
// # Figures
//
// Every field of a run that does not identify it is a figure. Nested fields are joined with dots,
// as in "latency.alloc.p50_ns"; a list is a single figure. Units follow from names: _bytes, and _ns
// or ns for times.
//
// Measured times vary between any two runs. They are marked, and two results that differ in nothing
// else are equal.
//
// # Cost
//
// A result is held in memory, at about 200 bytes a value. Comparison is linear apart from sorting.
package diff
