// Package nvml tells what NVIDIA's management library says of GPUs: what there is, and how much
// memory is in use, of whoever uses it.
//
// It is built on NVIDIA/go-nvml, which needs cgo, and with which a program does not even start on a
// machine without a driver where all symbols are bound at once (LD_BIND_NOW=1, or linked with -z
// now). So the library is part of a program only with the build tag nvml:
//
//	go build -tags nvml ./cmd/vramyard
//
// Without it, and on a machine without the library, [Open] answers [ErrUnavailable] and says why;
// package device/cuda then still tells the memory of the whole GPU.
//
// No function of the library is called before it was started, nor one that it does not have: either
// would end the program.
package nvml
