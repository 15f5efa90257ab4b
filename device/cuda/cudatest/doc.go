// Package cudatest builds a stand-in for the CUDA driver, for tests without a GPU.
//
// The stand-in is a C library over host memory. It checks arguments and structures more strictly
// than the driver, counts calls, and fails calls on request. The tests compile it. Without a C
// compiler, or on a system other than Linux, [Build] skips the test with a message.
package cudatest
