// Command libvramyard is the strategies of this repository as a shared library that PyTorch
// allocates through:
//
//	go build -buildmode=c-shared -o libvramyard.so ./cmd/libvramyard
//
// It needs cgo, a C++ compiler and Linux; anything else builds a program that says so. vramyard.h
// has the functions, docs/pytorch.md how they are used. What they do is in package pluggable; here
// is the border: shim.cc throws what Go answers as an error.
package main
