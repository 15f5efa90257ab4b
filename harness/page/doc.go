// Package page writes a report as one HTML file that opens offline.
//
// The file holds all it needs: style, scripts, data, and the licences of what others wrote. Nothing in it
// leads to a network, and a policy in its head forbids it. Its tables are plain HTML and read without
// scripts. What is drawn comes from package picture: a description in JSON and beside it all arrays in
// one compressed piece, so that the file stays small.
//
// Texts out of files, such as names and tags, are cut, cleared of what controls something and escaped.
// The same report gives the same file, byte for byte.
//
// docs/reports.md says what each view shows.
package page
