//go:build !(nvml && cgo && linux)

package nvml

import "fmt"

// Session is a started library.
type Session struct{}

// Open starts the library. The caller closes the session.
//
// Errors: [ErrUnavailable], always in this build.
func Open() (*Session, error) {
	return nil, fmt.Errorf("%w: this program was built without it (go build -tags nvml, with cgo, on Linux)",
		ErrUnavailable)
}

// Close stops the library.
func (*Session) Close() error { return nil }

// Inventory returns what there is.
func (*Session) Inventory() (Inventory, error) { return Inventory{}, ErrUnavailable }

// Memory returns the memory of the GPU at an address on the bus, as package device/cuda writes it.
func (*Session) Memory(string) (Memory, error) { return Memory{}, ErrUnavailable }
