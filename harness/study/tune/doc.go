// Package tune searches the settings of one strategy for those that carry given traces on
// the smallest device, and for those that take the least time.
//
// The grid is that of the catalogue: for each setting the values worth trying. If it has no
// more points than may be evaluated, all of them are. Otherwise the search is a descent: from
// the preset, every setting is changed to each of its values, one at a time; the changes
// that helped are taken, all together if that helps more than the best alone; and again from
// there, until no single change helps. Half of the points may be spent on memory, the rest on
// time, which is descended from the same preset.
//
// A point is judged by the geometric mean over the traces: of minimum capacity over lower
// bound, or of nanoseconds per operation. Points that cannot differ, because their
// configurations are equal once defaults are filled in, are run once; combinations that the
// strategy refuses are skipped and counted.
//
// In the end every single change of the best point is evaluated: that is what each setting
// was worth. A worth says nothing about two settings changed together.
//
// Everything but times, and what is chosen by them, is the same on every machine and on any
// number of cores.
package tune
