// A stand-in for the CUDA driver: memory, virtual memory, streams, events and pools of the device
// that the program simulates, by the driver's interface. runtime.cc says what else holds.
#include <dlfcn.h>

#include <initializer_list>

#include "runtime.h"

typedef int result_t;
typedef int device_t;
typedef uint64_t address_t, handle_t;
typedef void *context_t, *stream_t, *event_t, *pool_t;

namespace {

// The contexts that this thread pushed, lowest first: the device that each replaced.
const int most_pushed = 64;
thread_local int replaced[most_pushed], pushed;

// The primary context of a device.
context_t primary(int device) { return pointer(0x1000 + uint64_t(device)); }

// The runtime of the program: it knows which streams capture. Null for a program without one.
template <typename F>
F of_runtime(const char *name) { return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name)); }

// What may not be done while a stream captures ends the capture.
int unless_capturing() {
  auto interrupts = of_runtime<bool (*)()>("vramyard_interrupts_capture");
  return interrupts != nullptr && interrupts() ? CAPTURE_UNSUPPORTED : SUCCESS;
}

uint64_t pool_of(pool_t p) { return number(p) - 1; }

pool_t as_pool(uint64_t n) { return pointer(n + 1); }

}  // namespace

// Devices and contexts. A thread always has a context: that of its current device.

API result_t cuInit(unsigned flags) { return flags == 0 ? SUCCESS : INVALID_VALUE; }
API result_t cuDriverGetVersion(int *v) {
  *v = 13020;
  return SUCCESS;
}
API result_t cuDeviceGetCount(int *n) {
  *n = vramyard_devices();
  return SUCCESS;
}
API result_t cuDeviceGet(device_t *d, int ordinal) {
  *d = ordinal;
  return known(ordinal) ? SUCCESS : INVALID_DEVICE;
}
API result_t cuDeviceGetName(char *name, int size, device_t d) {
  if (!known(d)) return INVALID_DEVICE;
  if (size <= 0) return INVALID_VALUE;
  strncpy(name, vramyard_card(d)->name, size_t(size));
  name[size - 1] = 0;
  return SUCCESS;
}
API result_t cuDeviceTotalMem_v2(size_t *bytes, device_t d) {
  if (!known(d)) return INVALID_DEVICE;
  struct reply r = ask_device(d, DEVICE_INFO);
  if (r.status == SUCCESS) *bytes = r.value[1];
  return r.status;
}
API result_t cuDeviceGetAttribute(int *value, int attribute, device_t d) {
  if (!known(d)) return INVALID_DEVICE;
  *value = device_attribute(vramyard_card(d), attribute, d);
  return SUCCESS;
}
API result_t cuDevicePrimaryCtxRetain(context_t *c, device_t d) {
  *c = primary(d);
  return known(d) ? SUCCESS : INVALID_DEVICE;
}
API result_t cuDevicePrimaryCtxRelease_v2(device_t) { return SUCCESS; }
API result_t cuDevicePrimaryCtxGetState(device_t, unsigned *flags, int *active) {
  *flags = 0, *active = 1;
  return SUCCESS;
}
API result_t cuCtxSetCurrent(context_t c) {
  uint64_t device = number(c) - number(primary(0));
  if (c != nullptr && device >= uint64_t(vramyard_devices())) return INVALID_CONTEXT;
  *vramyard_current() = c == nullptr ? -1 : int(device);
  return SUCCESS;
}
API result_t cuCtxGetCurrent(context_t *c) {
  *c = primary(here());
  return SUCCESS;
}
API result_t cuCtxPushCurrent_v2(context_t c) {
  if (pushed == most_pushed) return INVALID_VALUE;
  int was = *vramyard_current(), e = cuCtxSetCurrent(c);
  if (e == SUCCESS) replaced[pushed++] = was;
  return e;
}
API result_t cuCtxPopCurrent_v2(context_t *c) {
  if (pushed == 0) return INVALID_CONTEXT;
  if (c != nullptr) *c = primary(here());
  *vramyard_current() = replaced[--pushed];
  return SUCCESS;
}
API result_t cuCtxGetDevice(device_t *d) {
  *d = here();
  return SUCCESS;
}
API result_t cuCtxSynchronize(void) {
  int e = unless_capturing();
  return e != SUCCESS ? e : ask(DEVICE_SYNC).status;
}

// Memory.

API result_t cuMemGetInfo_v2(size_t *free, size_t *total) {
  struct reply r = ask(DEVICE_INFO);
  if (r.status == SUCCESS) *free = r.value[0], *total = r.value[1];
  return r.status;
}
API result_t cuMemAlloc_v2(address_t *out, size_t size) {
  *out = 0;
  int e = size == 0 ? INVALID_VALUE : unless_capturing();
  return e != SUCCESS ? e : take(out, ask(DEVICE_RESERVE, size));
}
API result_t cuMemFree_v2(address_t a) {
  int e = unless_capturing();
  return e != SUCCESS ? e : give_back(a);
}
API result_t cuMemGetAddressRange_v2(address_t *base, size_t *size, address_t a) {
  struct reply r = ask(DEVICE_LOOKUP, a);
  if (r.status == SUCCESS && base != nullptr) *base = r.value[0];
  if (r.status == SUCCESS && size != nullptr) *size = r.value[1];
  return r.status;
}
API result_t cuMemsetD8_v2(address_t a, unsigned char value, size_t n) {
  vramyard_fill(pointer(a), value, 1, n);
  return SUCCESS;
}
API result_t cuMemsetD8Async(address_t a, unsigned char value, size_t n, stream_t) { return cuMemsetD8_v2(a, value, n); }
API result_t cuMemsetD32_v2(address_t a, unsigned value, size_t n) {
  if (n > SIZE_MAX / 4) return INVALID_VALUE;
  vramyard_fill(pointer(a), value, 4, 4 * n);
  return SUCCESS;
}
API result_t cuMemcpyHtoD_v2(address_t to, const void *from, size_t n) {
  vramyard_copy(pointer(to), from, n);
  return SUCCESS;
}
API result_t cuMemcpyDtoH_v2(void *to, address_t from, size_t n) {
  vramyard_copy(to, pointer(from), n);
  return SUCCESS;
}
API result_t cuMemcpyDtoD_v2(address_t to, address_t from, size_t n) {
  vramyard_copy(pointer(to), pointer(from), n);
  return SUCCESS;
}

// Virtual memory.

struct access_t {
  int type, id, flags;
};
API result_t cuMemGetAllocationGranularity(size_t *bytes, const void *, int) { return take(bytes, ask(DEVICE_GRANULARITY)); }
API result_t cuMemAddressReserve(address_t *out, size_t size, size_t align, address_t at, unsigned long long flags) {
  return flags != 0 ? int(INVALID_VALUE) : take(out, ask(DEVICE_RESERVE_RANGE, size, align, at));
}
API result_t cuMemAddressFree(address_t a, size_t) { return ask(DEVICE_RELEASE_RANGE, a).status; }
API result_t cuMemCreate(handle_t *out, size_t size, const void *, unsigned long long flags) {
  return flags != 0 ? int(INVALID_VALUE) : take(out, ask(DEVICE_CREATE, size));
}
API result_t cuMemRelease(handle_t h) { return ask(DEVICE_RELEASE_HANDLE, h).status; }
API result_t cuMemMap(address_t a, size_t size, size_t offset, handle_t h, unsigned long long flags) {
  return flags != 0 ? int(INVALID_VALUE) : ask(DEVICE_MAP, a, size, h, offset).status;
}
API result_t cuMemUnmap(address_t a, size_t size) { return ask(DEVICE_UNMAP, a, size).status; }
API result_t cuMemSetAccess(address_t a, size_t size, const struct access_t *access, size_t count) {
  if (count == 0) return INVALID_VALUE;
  int flags = access[0].flags;
  return ask(DEVICE_SET_ACCESS, a, size, flags == 3 ? 2 : uint64_t(flags)).status;
}

// Streams and events.

API result_t cuStreamCreate(stream_t *s, unsigned) {
  *s = vramyard_token();
  return SUCCESS;
}
API result_t cuStreamDestroy_v2(stream_t) { return SUCCESS; }
API result_t cuStreamSynchronize(stream_t s) { return ask(DEVICE_SYNC_STREAM, number(s)).status; }
API result_t cuStreamQuery(stream_t s) { return finished(ask(DEVICE_STREAM_DONE, number(s))); }
API result_t cuStreamWaitEvent(stream_t s, event_t e, unsigned) { return ask(DEVICE_WAIT, number(s), number(e)).status; }
API result_t cuStreamIsCapturing(stream_t s, int *status) {
  auto capturing = of_runtime<int (*)(stream_t, int *)>("cudaStreamIsCapturing");
  *status = 0;
  return capturing == nullptr ? int(SUCCESS) : capturing(s, status);
}
API result_t cuThreadExchangeStreamCaptureMode(int *mode) {
  auto exchange = of_runtime<int (*)(int *)>("cudaThreadExchangeStreamCaptureMode");
  return exchange == nullptr ? int(SUCCESS) : exchange(mode);
}
API result_t cuEventCreate(event_t *e, unsigned) { return take(e, ask(DEVICE_NEW_EVENT)); }
API result_t cuEventDestroy_v2(event_t e) { return ask(DEVICE_DESTROY_EVENT, number(e)).status; }
API result_t cuEventRecord(event_t e, stream_t s) { return ask(DEVICE_RECORD, number(e), number(s)).status; }
API result_t cuEventQuery(event_t e) { return query_event(e, __builtin_return_address(0)); }
API result_t cuEventSynchronize(event_t e) { return ask(DEVICE_SYNC_EVENT, number(e)).status; }

// Pools in the order of streams.

API result_t cuMemAllocFromPoolAsync(address_t *out, size_t size, pool_t pool, stream_t s) {
  *out = 0;
  return size == 0 ? int(INVALID_VALUE) : take(out, ask(DEVICE_ALLOC_ASYNC, pool_of(pool), size, number(s)));
}
API result_t cuMemAllocAsync(address_t *out, size_t size, stream_t s) { return cuMemAllocFromPoolAsync(out, size, as_pool(0), s); }
API result_t cuMemFreeAsync(address_t a, stream_t s) { return a == 0 ? int(SUCCESS) : ask(DEVICE_FREE_ASYNC, a, number(s)).status; }
API result_t cuDeviceGetDefaultMemPool(pool_t *pool, device_t d) {
  *pool = as_pool(0);
  return known(d) ? SUCCESS : INVALID_DEVICE;
}
API result_t cuMemPoolCreate(pool_t *pool, const void *) {
  struct reply r = ask(DEVICE_NEW_POOL);
  if (r.status == SUCCESS) *pool = as_pool(r.value[0]);
  return r.status;
}
API result_t cuMemPoolDestroy(pool_t pool) { return ask(DEVICE_DESTROY_POOL, pool_of(pool)).status; }
API result_t cuMemPoolSetAttribute(pool_t pool, int attribute, void *value) {
  return set_pool(pool_of(pool), attribute, value);
}
API result_t cuMemPoolGetAttribute(pool_t pool, int attribute, void *value) {
  return get_pool(pool_of(pool), attribute, value);
}
API result_t cuMemPoolTrimTo(pool_t pool, size_t keep) { return ask(DEVICE_TRIM_POOL, pool_of(pool), keep).status; }

// Errors, and entry points by name.

API result_t cuGetErrorString(result_t e, const char **out) {
  *out = error_name(e);
  return SUCCESS;
}
API result_t cuGetErrorName(result_t e, const char **out) {
  switch (e) {
    case SUCCESS: *out = "CUDA_SUCCESS"; break;
    case INVALID_VALUE: *out = "CUDA_ERROR_INVALID_VALUE"; break;
    case OUT_OF_MEMORY: *out = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case NOT_INITIALIZED: *out = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case INVALID_DEVICE: *out = "CUDA_ERROR_INVALID_DEVICE"; break;
    case INVALID_CONTEXT: *out = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case CAPTURE_UNSUPPORTED: *out = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; break;
    case INVALID_HANDLE: *out = "CUDA_ERROR_INVALID_HANDLE"; break;
    case NOT_READY: *out = "CUDA_ERROR_NOT_READY"; break;
    case NOT_SUPPORTED: *out = "CUDA_ERROR_NOT_SUPPORTED"; break;
    default: *out = "CUDA_ERROR_UNKNOWN";
  }
  return SUCCESS;
}

// A runtime that is linked in statically asks for tables of the driver's own before anything else. There are none; the
// program says so.
API result_t cuGetExportTable(const void **out, const void *) {
  *out = nullptr;
  return ask(DEVICE_EXPORT_TABLE).status;
}

// What is asked for by its name of the first release has that of a later one here, if any.
API result_t cuGetProcAddress(const char *name, void **out, int, uint64_t) {
  void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  char longer[256];
  *out = nullptr;
  for (const char *suffix : {"_v2", ""}) {
    if (self == nullptr || strlen(name) > sizeof longer - 4) break;
    strcpy(longer, name);
    strcat(longer, suffix);
    if ((*out = dlsym(self, longer)) != nullptr) break;
  }
  return *out != nullptr ? SUCCESS : 500;
}
API result_t cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *found) {
  int e = cuGetProcAddress(name, out, version, flags);
  if (found != nullptr) *found = e != SUCCESS;
  return e;
}
