//go:build cgo && linux

package main

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/cuda"
)

// openCUDA opens a real GPU with PyTorch's streams.
func openCUDA(ordinal int) (device.Device, error) {
	d, err := cuda.Open(cuda.Config{Ordinal: ordinal, ForeignStreams: true})
	if err != nil {
		return nil, err // not d, which would be a typed nil
	}
	return d, nil
}
