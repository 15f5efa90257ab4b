// Package python holds the modules of this directory that programs of this repository give to a
// Python interpreter.
package python

import _ "embed" // Torch

// Torch is the source of vramyard/torch.py, which makes PyTorch allocate through libvramyard.
//
//go:embed vramyard/torch.py
var Torch string
