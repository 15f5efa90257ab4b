package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// ErrNoDriver is the error if no CUDA driver could be loaded or initialized.
var ErrNoDriver = errors.New("cuda: no driver")

// entry identifies a function of the driver.
type entry uint8

// The functions, in groups that are required as a whole.
const (
	fnInit entry = iota
	fnDriverGetVersion
	fnDeviceGetCount
	fnDeviceGet
	fnDeviceGetName
	fnDeviceTotalMem
	fnDeviceGetAttribute
	fnPrimaryCtxRetain
	fnPrimaryCtxRelease
	fnCtxPush
	fnCtxPop
	fnCtxSynchronize
	fnGetErrorName
	fnGetErrorString
	fnMemGetInfo
	fnMemAlloc
	fnMemFree
	fnMemsetD8
	fnMemsetD32
	fnMemcpyDtoH
	fnStreamCreate
	fnStreamDestroy
	fnStreamSynchronize
	fnStreamWaitEvent
	fnEventCreate
	fnEventDestroy
	fnEventRecord
	fnEventQuery
	fnEventSynchronize

	fnMemGetAllocationGranularity
	fnMemAddressReserve
	fnMemAddressFree
	fnMemCreate
	fnMemRelease
	fnMemMap
	fnMemUnmap
	fnMemSetAccess

	fnDeviceGetDefaultMemPool
	fnMemPoolCreate
	fnMemPoolDestroy
	fnMemPoolTrimTo
	fnMemPoolGetAttribute
	fnMemPoolSetAttribute
	fnMemAllocFromPoolAsync
	fnMemFreeAsync

	fnThreadExchangeStreamCaptureMode
	numEntries

	firstVirtual = fnMemGetAllocationGranularity
	firstPool    = fnDeviceGetDefaultMemPool
	firstCapture = fnThreadExchangeStreamCaptureMode
)

// symbols are the exported names of the functions. If a function has several versions, it is the
// one with 64-bit sizes and addresses.
var symbols = [numEntries]string{
	fnInit: "cuInit", fnDriverGetVersion: "cuDriverGetVersion", fnDeviceGetCount: "cuDeviceGetCount",
	fnDeviceGet:     "cuDeviceGet",
	fnDeviceGetName: "cuDeviceGetName", fnDeviceTotalMem: "cuDeviceTotalMem_v2",
	fnDeviceGetAttribute: "cuDeviceGetAttribute",
	fnPrimaryCtxRetain:   "cuDevicePrimaryCtxRetain", fnPrimaryCtxRelease: "cuDevicePrimaryCtxRelease_v2",
	fnCtxPush: "cuCtxPushCurrent_v2", fnCtxPop: "cuCtxPopCurrent_v2", fnCtxSynchronize: "cuCtxSynchronize",
	fnGetErrorName: "cuGetErrorName", fnGetErrorString: "cuGetErrorString",
	fnMemGetInfo: "cuMemGetInfo_v2", fnMemAlloc: "cuMemAlloc_v2", fnMemFree: "cuMemFree_v2",
	fnMemsetD8: "cuMemsetD8_v2", fnMemsetD32: "cuMemsetD32_v2", fnMemcpyDtoH: "cuMemcpyDtoH_v2",
	fnStreamCreate: "cuStreamCreate", fnStreamDestroy: "cuStreamDestroy_v2", fnStreamSynchronize: "cuStreamSynchronize",
	fnStreamWaitEvent: "cuStreamWaitEvent", fnEventCreate: "cuEventCreate", fnEventDestroy: "cuEventDestroy_v2",
	fnEventRecord: "cuEventRecord", fnEventQuery: "cuEventQuery", fnEventSynchronize: "cuEventSynchronize",
	fnMemGetAllocationGranularity: "cuMemGetAllocationGranularity", fnMemAddressReserve: "cuMemAddressReserve",
	fnMemAddressFree: "cuMemAddressFree", fnMemCreate: "cuMemCreate", fnMemRelease: "cuMemRelease", fnMemMap: "cuMemMap",
	fnMemUnmap: "cuMemUnmap", fnMemSetAccess: "cuMemSetAccess",
	fnDeviceGetDefaultMemPool: "cuDeviceGetDefaultMemPool", fnMemPoolCreate: "cuMemPoolCreate",
	fnMemPoolDestroy: "cuMemPoolDestroy",
	fnMemPoolTrimTo:  "cuMemPoolTrimTo", fnMemPoolGetAttribute: "cuMemPoolGetAttribute",
	fnMemPoolSetAttribute:   "cuMemPoolSetAttribute",
	fnMemAllocFromPoolAsync: "cuMemAllocFromPoolAsync", fnMemFreeAsync: "cuMemFreeAsync",
	fnThreadExchangeStreamCaptureMode: "cuThreadExchangeStreamCaptureMode",
}

// driver is a loaded and initialized CUDA driver. It is safe for concurrent use.
type driver struct {
	version   int // 1000 * major version of CUDA + 10 * minor version
	functions [numEntries]uintptr
	virtual   bool // has the functions of virtual memory
	pools     bool // has the functions of pools
	captures  bool // has the function that exchanges the capture mode

	mu     sync.Mutex
	errors map[failure]*Error // errors returned so far, so that frequent failures do not allocate
}

// failure is a function and its result.
type failure struct {
	entry entry
	code  Code
}

// drivers are the loaded drivers, by path. They are never unloaded.
var drivers struct {
	sync.Mutex
	byPath map[string]*driver
}

// load returns the driver at a path, loaded and initialized; "" is the system's driver.
func load(path string) (*driver, error) {
	if path == "" {
		path = defaultDriver
	}
	drivers.Lock()
	defer drivers.Unlock()
	if d := drivers.byPath[path]; d != nil {
		return d, nil
	}
	library, err := openLibrary(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s cannot be loaded: %w", ErrNoDriver, path, err)
	}
	d := &driver{errors: map[failure]*Error{}}
	if err := d.resolve(library, path); err != nil {
		return nil, err
	}
	if err := d.call(fnInit, 0); err != nil {
		return nil, fmt.Errorf("%w: %s cannot be started: %w", ErrNoDriver, path, err)
	}
	var version int32
	if err := d.call(fnDriverGetVersion, uintptr(unsafe.Pointer(&version))); err != nil {
		return nil, fmt.Errorf("%w: %s does not report its version: %w", ErrNoDriver, path, err)
	}
	d.version = int(version)
	if drivers.byPath == nil {
		drivers.byPath = map[string]*driver{}
	}
	drivers.byPath[path] = d
	return d, nil
}

// resolve looks up the functions. The groups of virtual memory, pools and captures, which older
// drivers lack, are complete or unused.
func (d *driver) resolve(library uintptr, path string) error {
	d.virtual, d.pools, d.captures = true, true, true
	for e, name := range symbols {
		f, err := symbol(library, name)
		switch e := entry(e); {
		case err == nil:
			d.functions[e] = f
		case e >= firstCapture:
			d.captures = false
		case e >= firstPool:
			d.pools = false
		case e >= firstVirtual:
			d.virtual = false
		default:
			return fmt.Errorf("%w: %s has no function %s", ErrNoDriver, path, name)
		}
	}
	return nil
}

// call calls a function of the driver and returns its result as an error, nil for success. Convert
// pointers to arguments in the call expression itself, which keeps their memory in place.
//
//go:uintptrescapes
func (d *driver) call(e entry, args ...uintptr) error {
	if code := Code(int32(invoke(d.functions[e], args...))); code != 0 {
		return d.failed(e, code)
	}
	return nil
}

// textAt returns the zero-terminated text at an address in the driver's memory.
func textAt(address *byte) string {
	if address == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(address), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(address, n))
}
