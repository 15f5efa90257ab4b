// Package nvml queries NVIDIA's management library: the GPUs of a machine, and the memory in use by
// all programs.
//
// It uses NVIDIA/go-nvml, which needs cgo. With go-nvml a program does not start on a machine
// without a driver if symbols are bound eagerly (LD_BIND_NOW=1, or linked with -z now). So the
// package needs the build tag nvml:
//
//	go build -tags nvml ./cmd/vramyard
//
// Without the tag or the library, [Open] returns [ErrUnavailable] with the reason. Package
// device/cuda still reports the memory of the whole GPU.
//
// A function of the library is called only after the library has been initialized and only if the
// library exports it; otherwise the program would crash.
package nvml
