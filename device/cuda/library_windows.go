//go:build windows && amd64 && !nocuda

package cuda

import "syscall"

// defaultDriver is the library that NVIDIA's driver installs.
const defaultDriver = "nvcuda.dll"

// openLibrary loads a shared library. It is never unloaded: drivers start threads.
func openLibrary(path string) (uintptr, error) {
	library, err := syscall.LoadLibrary(path)
	return uintptr(library), err
}

// symbol returns the address of a function of a library, or an error if it has none.
func symbol(library uintptr, name string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(library), name)
}

// invoke calls a function of C whose arguments and result are integers.
//
//go:uintptrescapes
func invoke(function uintptr, args ...uintptr) uintptr {
	r, _, _ := syscall.SyscallN(function, args...)
	return r
}
