// Package launch runs a Python program on the released CUDA build of PyTorch over simulated
// devices, and collects the memory history that PyTorch's own allocator records.
//
// [Run] finds the PyTorch of the program's interpreter, builds the stand-ins for its CUDA libraries
// (package device/standin), serves the devices and starts the program with two changes to its
// environment: a sitecustomize.py at the front of PYTHONPATH, which loads the stand-ins and records
// the history in every Python process of the program, and PyTorch's settings, if some are given.
// Nothing is installed and nothing of the program changes.
package launch
