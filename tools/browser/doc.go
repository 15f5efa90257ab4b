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
// "beside" needs the viewer in the folder VIZ: MemoryViz.js and process_alloc_data.js from
// torch/utils/viz of PyTorch, and d3.min.js from the package that "npm pack d3@7" fetches. They are
// served unchanged, except that the import of d3 from the network is redirected to the file. Each
// opening uses a fresh Chromium and ends with a picture of the window. It begins when the snapshot
// is chosen (viewer), when the address is opened (page), or when the program starts ("vramyard
// view"). --help lists the flags. Memory is the peak of the tab's process, which only Linux
// reports.
//
// It is a module of its own, so that what drives a browser stays out of
// vramyard's.
package main
