//go:build nocuda || (!(linux && (amd64 || arm64)) && !(windows && amd64))

package cuda

import (
	"errors"
	"runtime"
)

// defaultDriver is a placeholder: there is no driver on this platform.
const defaultDriver = "a CUDA driver"

var errPlatform = errors.New("this program was built for " + runtime.GOOS + "/" + runtime.GOARCH + ", or with -tags " +
	"nocuda, which have no driver")

func openLibrary(string) (uintptr, error) { return 0, errPlatform }

func symbol(uintptr, string) (uintptr, error) { return 0, errPlatform }

func invoke(uintptr, ...uintptr) uintptr { panic("cuda: called without a driver") } // openLibrary always fails
