// Package python holds the modules of this directory that programs of this repository give to a
// Python interpreter.
package python

import _ "embed" // Torch

// Torch is the source of vramyard_torch.py, which makes PyTorch allocate through libvramyard.
//
//go:embed vramyard_torch.py
var Torch string
