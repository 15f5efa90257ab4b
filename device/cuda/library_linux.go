//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import "github.com/ebitengine/purego"

// defaultDriver is the library that NVIDIA's driver installs.
const defaultDriver = "libcuda.so.1"

// openLibrary loads a shared library. It is never unloaded: drivers start threads.
func openLibrary(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// symbol returns the address of a function of a library, or an error if it has none.
func symbol(library uintptr, name string) (uintptr, error) { return purego.Dlsym(library, name) }

// invoke calls a function of C whose arguments and result are integers.
//
//go:uintptrescapes
func invoke(function uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(function, args...)
	return r
}
