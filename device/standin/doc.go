// Package standin provides stand-ins for the CUDA libraries of a program, so that an unmodified
// PyTorch runs without a GPU and its memory is a simulated device.
//
// A stand-in has to export every name that the program's objects import from the library, under the
// same SONAME and version node. Scan reads these names from an installed PyTorch, without importing
// it: see Facts.
package standin
