// Package fileio reads files that may be compressed, and writes output files completely or not at
// all.
package fileio
