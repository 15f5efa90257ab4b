// Package tune searches the settings of one strategy that complete given traces on the smallest
// device, and the fastest settings.
//
// The grid is the catalogue's: values worth trying for each setting. If the limit of points allows,
// all are evaluated. Otherwise the search is a descent: starting from the preset, every setting is
// changed to each of its values, one at a time. The improvements are taken together if that is
// better than the best alone, and the search continues from there until no single change improves.
// Up to half of the points are spent on memory, the rest on time, starting from the same preset.
//
// A point is judged by the geometric mean over the traces of minimum capacity over lower bound, or
// of nanoseconds per operation. Points with equal configurations, defaults included, are run once;
// combinations that the strategy refuses are skipped and counted.
//
// At the end every single change of the best point is evaluated, to show the worth of each setting.
// Combined effects of two settings are not covered.
//
// Everything except times, and choices based on them, is independent of machine and number of
// cores.
package tune
