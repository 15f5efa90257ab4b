// Command browser opens the report pages of vramyard in a headless Chromium.
//
//	go -C tools/browser test ./...          opens reports, uses every view and holds what is drawn to the data
//	go -C tools/browser run . DIR [FILE...] writes pictures of every view of reports into DIR
//
// The command draws each view light, dark, as wide as a phone and as printed: for people to look at. Without
// FILE it makes the reports itself. It is a module of its own, so that what drives a browser stays out of
// vramyard's.
package main
