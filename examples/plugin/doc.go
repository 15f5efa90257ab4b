// Package plugin is an allocator in C that PyTorch can load, firstfit/firstfit.c, and a test that
// holds it to what README.md says of it.
package plugin
