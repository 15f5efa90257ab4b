// Command record replays the traces of testdata/vectors/torch through a release of PyTorch.
//
//	go run ./harness/trace/vectors/record PYTHON FOLDER
//
// PYTHON is an interpreter with a CUDA build of PyTorch, which needs neither a GPU nor NVIDIA's
// packages: the program runs over the stand-ins of package standin. Their device is simulated, as
// the manifest of the vectors describes it. The answers to each trace are written to FOLDER as
// NAME.expected. Statistics that the release does not keep have no line. Requests, captures and
// MemPools are calls of PyTorch's own functions. A trace that a release cannot run is reported with
// the reason.
package main
