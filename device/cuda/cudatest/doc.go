// Package cudatest builds a stand-in for the CUDA driver, for tests without a GPU.
//
// The stand-in is a library in C over memory of the host. It checks arguments and structures more
// strictly than the driver does, counts calls, and refuses any of them if a test wants that. It is
// compiled by the tests: where there is no compiler of C, or on another system than Linux, [Build]
// skips the test and says so.
package cudatest
