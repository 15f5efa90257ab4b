// Package python holds the modules of this directory that programs of this repository give to a
// Python interpreter.
package python

import _ "embed" // the modules

// Torch is the source of vramyard/torch.py, which makes PyTorch allocate through libvramyard.
//
//go:embed vramyard/torch.py
var Torch string

// Reads is the source of vramyard/reads.py, which names the lines of a program.
//
//go:embed vramyard/reads.py
var Reads string
