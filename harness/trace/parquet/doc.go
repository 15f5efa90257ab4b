// Package parquet reads and writes Parquet files: long traces, and tables of results.
//
// [WriteTable] writes the tables of package flat, and [ReadTable] reads them. The rest of this
// package is about traces.
//
// # Traces
//
// A file has a row for each event and a column for each field, compressed with zstd, in groups of
// 2^20 rows. docs/traces.md lists the columns, which pandas, polars and DuckDB can read. The
// metadata of the file hold the header, under keys that begin with "vramyard.". [Write] takes any
// [trace.Source] and holds at most one group of rows. Equal events give equal bytes.
//
// [Open] returns a [File], itself a [trace.Source], which decodes a few thousand rows at a time.
// [File.Trace] loads all events into memory. So the memory of a conversion or a replay grows with
// the live blocks, not with the number of events. Walking costs about 40 ns an event, see
// BenchmarkRead.
//
// # Strictness
//
// A file must have been written by this package or be indistinguishable. Errors are: another
// version; a missing or unknown column, or one of another type; an event count that differs from
// the rows; an unknown kind; a free of an id that is not live; decreasing time. An error names the
// file and, where possible, the row, counted from 0. Checksums of pages are verified. A corrupt
// file never makes a reader panic, and a decompression bomb takes no more memory than Open's
// budget.
package parquet
