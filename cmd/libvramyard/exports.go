//go:build cgo && linux

package main

/*
#cgo CXXFLAGS: -std=c++17 -O2 -Wall -Wextra
#include <stdint.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/cmd/libvramyard/pluggable"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/strategies"
)

// main is required by the build mode and never called.
func main() {}

// library serves the process. It reads the environment at first use.
var library = pluggable.New(pluggable.Host{Env: getenv, Pid: os.Getpid(), Strategies: strategies.All(), Open: openCUDA})

// getenv reads the current environment. Go's own copy dates from the loading of the library, and
// programs set variables later.
func getenv(name string) string {
	key := C.CString(name)
	defer C.free(unsafe.Pointer(key))
	return C.GoString(C.getenv(key))
}

// The statuses that are returned to shim.cc.
const (
	statusOK       = 0
	statusNoMemory = 1
	statusFailed   = 2
)

// answer writes the text of an error, truncated and null-terminated, and returns the status.
func answer(err error, text *C.char, room C.size_t) C.int {
	if err == nil {
		return statusOK
	}
	put(err.Error(), text, room-1)
	*(*byte)(unsafe.Add(unsafe.Pointer(text), min(len(err.Error()), int(room-1)))) = 0
	if _, oom := errors.AsType[*pluggable.OutOfMemoryError](err); oom {
		return statusNoMemory
	}
	return statusFailed
}

// put copies as much of a text as fits, and returns the length of the whole text.
func put(s string, text *C.char, room C.size_t) C.size_t {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(text)), int(room)), s)
	return C.size_t(len(s))
}

//export vramyardGoAlloc
func vramyardGoAlloc(
	out *C.uintptr_t, size C.size_t, ordinal C.int, stream C.uintptr_t, pool C.uint64_t, text *C.char, room C.size_t,
) C.int {
	a, err := library.Alloc(device.Size(size), int(ordinal), device.Stream(stream), alloc.PoolID(pool))
	*out = C.uintptr_t(a)
	return answer(err, text, room)
}

//export vramyardGoFree
func vramyardGoFree(ptr C.uintptr_t, ordinal C.int, text *C.char, room C.size_t) C.int {
	return answer(library.Free(device.Addr(ptr), int(ordinal)), text, room)
}

//export vramyardGoInit
func vramyardGoInit(devices C.int, text *C.char, room C.size_t) C.int {
	return answer(library.Init(int(devices)), text, room)
}

//export vramyardGoReset
func vramyardGoReset(text *C.char, room C.size_t) C.int { return answer(library.Reset(), text, room) }

//export vramyardGoFraction
func vramyardGoFraction(fraction C.double, ordinal C.int, text *C.char, room C.size_t) C.int {
	return answer(library.MemoryFraction(float64(fraction), int(ordinal)), text, room)
}

//export vramyardGoBase
func vramyardGoBase(ptr C.uintptr_t, start *C.uintptr_t, size *C.size_t) C.int {
	at, n, ok := library.Base(device.Addr(ptr))
	if !ok {
		return statusFailed
	}
	*start, *size = C.uintptr_t(at), C.size_t(n)
	return statusOK
}

//export vramyardGoRecordStream
func vramyardGoRecordStream(ptr, stream C.uintptr_t, text *C.char, room C.size_t) C.int {
	return answer(library.RecordStream(device.Addr(ptr), device.Stream(stream)), text, room)
}

//export vramyardGoPool
func vramyardGoPool(what, ordinal C.int, first, second C.uint64_t, pool *C.uint64_t, text *C.char,
	room C.size_t) C.int {
	k := pluggable.PoolKey{First: uint64(first), Second: uint64(second)}
	var err error
	switch what {
	case 0:
		var id alloc.PoolID
		id, err = library.BeginPool(int(ordinal), k)
		*pool = C.uint64_t(id)
	case 1:
		err = library.EndPool(int(ordinal), k)
	case 2:
		err = library.ReleasePool(int(ordinal), k)
	default:
		err = fmt.Errorf("vramyard: unknown step %d of a pool", int(what))
	}
	return answer(err, text, room)
}

//export vramyardGoDumpTrace
func vramyardGoDumpTrace(path, text *C.char, room C.size_t) C.int {
	return answer(library.DumpTrace(C.GoString(path)), text, room)
}

//export vramyardGoFinish
func vramyardGoFinish(text *C.char, room C.size_t) C.int { return answer(library.Finish(), text, room) }

//export vramyardGoStats
func vramyardGoStats(text *C.char, room C.size_t) C.size_t {
	return put(string(library.StatsJSON()), text, room)
}

//export vramyardGoVersion
func vramyardGoVersion(text *C.char, room C.size_t) C.size_t {
	return put(pluggable.Version, text, room)
}
