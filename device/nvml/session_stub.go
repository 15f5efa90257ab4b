//go:build !(nvml && cgo && linux)

package nvml

import "fmt"

// Session is an initialized library.
type Session struct{}

// Open initializes the library. The caller closes the session.
//
// Errors: [ErrUnavailable], always in this build.
func Open() (*Session, error) {
	return nil, fmt.Errorf("%w: this program was built without it (go build -tags nvml, with cgo, on Linux)",
		ErrUnavailable)
}

// Close shuts the library down.
func (*Session) Close() error { return nil }

// Inventory returns the GPUs of the machine.
func (*Session) Inventory() (Inventory, error) { return Inventory{}, ErrUnavailable }

// Memory returns the memory of the GPU with a bus address in the format of package device/cuda.
func (*Session) Memory(string) (Memory, error) { return Memory{}, ErrUnavailable }
