// Package parquet reads and writes Parquet files: long traces, and tables of results.
//
// [WriteTable] writes the tables of package flat. The rest of this package is about traces.
//
// # Traces
//
// A file has a row for each event and a column for each field, compressed with zstd, in groups of
// 2^20 rows; docs/traces.md has the table of the columns, which pandas, polars and DuckDB show as
// it is. What a header says is in the metadata of the file, under keys that begin with "vramyard.".
// [Write] takes any [trace.Source] and holds one group of rows at most. The same events give the
// same bytes.
//
// [Open] returns a [File], a [trace.Source] itself, which decodes a few thousand rows at a time
// into columns and hands them on as events; [File.Trace] puts all of them into memory. So a trace
// can be converted and replayed in memory that grows with what is live in it, and not with the
// number of its events. Walking costs about 40 ns an event, see BenchmarkRead.
//
// # Strictness
//
// A file must have been written by this package or look as if it had: another version, a column
// that is missing, not known or of another type, a count of events that differs from the rows, a
// kind that is not known, a free of what is not live, or time that goes back is an error that
// names the file, and the row where there is one, counted from 0. Pages are checked against their
// checksums. A broken file never makes a reader panic, and one that was made to expand takes no
// more memory than the budget that Open is given.
package parquet
