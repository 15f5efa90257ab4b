// Package flat makes tables of results for programs that analyse them: one row for each run, one
// column for each field, with a type that does not depend on the values. [Of] derives the columns
// from the JSON form of the rows, so that a field has one name in every output. A [Table] writes
// itself as CSV and, if it has numbers only, as an array of NumPy; package parquet writes it as
// Parquet. [Table.Set] fills rows from a file.
package flat
