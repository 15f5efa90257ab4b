//go:build !(linux && (amd64 || arm64)) && !(windows && amd64)

package cuda

import (
	"errors"
	"runtime"
)

// defaultDriver names what there is not.
const defaultDriver = "a CUDA driver"

var errPlatform = errors.New("there is none for " + runtime.GOOS + "/" + runtime.GOARCH)

func openLibrary(string) (uintptr, error) { return 0, errPlatform }

func symbol(uintptr, string) (uintptr, error) { return 0, errPlatform }

func invoke(uintptr, ...uintptr) uintptr { panic("cuda: called without a driver") } // openLibrary never succeeds
