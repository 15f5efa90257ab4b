// Command libvramyard is the strategies of this repository as a shared library that PyTorch
// allocates through:
//
//	go build -buildmode=c-shared -o libvramyard.so ./cmd/libvramyard
//
// It needs cgo, a C++ compiler and Linux; elsewhere it builds a program that prints this.
// vramyard.h declares the functions and docs/pytorch.md describes their use. Package pluggable
// implements them; this package converts types, and shim.cc throws the errors that Go returns.
package main
