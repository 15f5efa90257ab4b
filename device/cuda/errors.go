package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/vramyard/vramyard/device"
)

// Code is a CUresult, the result of a driver function.
type Code int32

// The codes that this package interprets.
const (
	CodeInvalidValue Code = 1   // CUDA_ERROR_INVALID_VALUE
	CodeOutOfMemory  Code = 2   // CUDA_ERROR_OUT_OF_MEMORY
	CodeNotReady     Code = 600 // CUDA_ERROR_NOT_READY
	CodeNotSupported Code = 801 // CUDA_ERROR_NOT_SUPPORTED
)

// Error is a failed driver call. With errors.Is it matches the corresponding one of
// [device.ErrOutOfMemory], [device.ErrInvalid] and [device.ErrUnsupported].
type Error struct {
	Call string // function of the driver
	Code Code   // returned code
	Name string // name of the code, such as CUDA_ERROR_OUT_OF_MEMORY; empty if the driver has no name for it
	Text string // the driver's description of the code
}

func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("cuda: %s returned %d, which the driver has no name for", e.Call, e.Code)
	}
	return fmt.Sprintf("cuda: %s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
}

// Unwrap returns the corresponding error of package device, or nil.
func (e *Error) Unwrap() error {
	switch e.Code {
	case CodeOutOfMemory:
		return device.ErrOutOfMemory
	case CodeInvalidValue:
		return device.ErrInvalid
	case CodeNotSupported:
		return device.ErrUnsupported
	}
	return nil
}

// isInvalidValue reports whether err is the driver's error for an invalid argument.
func isInvalidValue(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Code == CodeInvalidValue
}

// failed returns the error for a result of a function. Each is created once.
func (d *driver) failed(e entry, code Code) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.errors[failure{e, code}]
	if err == nil {
		err = &Error{Call: symbols[e], Code: code, Name: d.describe(fnGetErrorName, code),
			Text: d.describe(fnGetErrorString, code)}
		d.errors[failure{e, code}] = err
	}
	return err
}

// describe returns the driver's text for a code.
func (d *driver) describe(e entry, code Code) string {
	var text *byte
	if invoke(d.functions[e], uintptr(uint32(code)), uintptr(unsafe.Pointer(&text))) != 0 {
		return ""
	}
	return textAt(text)
}
