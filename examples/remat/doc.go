// Package remat is three op logs of training steps, recorded by python/dtrlog.py from the programs
// in record.py, and tests that hold them to what PyTorch's own profiler counted.
package remat
