// Command browser opens the report pages of vramyard in a headless Chromium.
//
//	go -C tools/browser test ./...          opens reports, uses every view and holds what is drawn to the data
//	go -C tools/browser run . DIR [FILE...] writes pictures of every view of reports into DIR
//	go -C tools/browser run . beside [flags] VIZ SNAPSHOT...
//	                                        times first pictures in PyTorch's memory viewer and in ours
//
// The command draws each view light, dark, as wide as a phone and as printed: for people to look
// at. Without FILE it makes the reports itself.
//
// "beside" wants the viewer in the folder VIZ: MemoryViz.js and what it imports from beside itself
// (process_alloc_data.js) out of torch/utils/viz of PyTorch, and d3.min.js out of the package that
// "npm pack d3@7" fetches. They are served as they are; where MemoryViz.js imports d3 from the
// network it is led to that file. Each opening has a Chromium of its own and ends with a picture of
// the window: for the viewer from the moment that the snapshot is chosen, for a page from its
// address, for "vramyard view" from its start. --help lists the flags. Memory is the most that the
// process of the tab held, which Linux alone tells.
//
// It is a module of its own, so that what drives a browser stays out of
// vramyard's.
package main
