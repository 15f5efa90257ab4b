// Package remat is op logs of training steps, recorded by vramyard.dtrlog from the programs in
// record.py, and tests that compare them with PyTorch's own profiler and with each other.
package remat
