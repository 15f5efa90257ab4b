// A stand-in for the CUDA runtime: the entry points that allocators use, with the memory and the
// streams of the device that the program simulates. Nothing is computed and nothing is copied:
// there is no memory behind its addresses. What a program may set and nobody reads is accepted.
#include "standin.h"

#define API extern "C" __attribute__((visibility("default")))

typedef int error_t_;
typedef void *stream_t, *event_t, *pool_t;

namespace {

thread_local int last_error, current_device = -1;

int noted(int e) {
  if (e != SUCCESS && e != NOT_READY) last_error = e;
  return e;
}

int here() { return current_device < 0 ? vramyard_ordinal() : current_device; }

bool known(int device) { return device >= 0 && device <= vramyard_ordinal(); }

uint64_t pool_of(pool_t p) { return number(p) - 1; }  // null is no pool

pool_t as_pool(uint64_t n) { return pointer(n + 1); }

}  // namespace

// Memory.

API error_t_ cudaMalloc(void **out, size_t size) { return noted(reserve(out, size)); }
API error_t_ cudaMallocManaged(void **out, size_t size, unsigned) { return noted(reserve(out, size)); }
API error_t_ cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
  *pitch = (width + 511) & ~size_t(511);
  return noted(reserve(out, *pitch * height));
}
API error_t_ cudaFree(void *p) { return noted(give_back(number(p))); }
API error_t_ cudaMemGetInfo(size_t *free, size_t *total) {
  struct reply r = ask(DEVICE_INFO);
  if (r.status == SUCCESS) *free = r.value[0], *total = r.value[1];
  return noted(r.status);
}
API error_t_ cudaMallocHost(void **out, size_t size) {
  return noted(posix_memalign(out, 4096, size == 0 ? 1 : size) == 0 ? SUCCESS : OUT_OF_MEMORY);
}
API error_t_ cudaHostAlloc(void **out, size_t size, unsigned) { return cudaMallocHost(out, size); }
API error_t_ cudaFreeHost(void *p) {
  free(p);
  return SUCCESS;
}
API error_t_ cudaHostRegister(void *, size_t, unsigned) { return SUCCESS; }
API error_t_ cudaHostUnregister(void *) { return SUCCESS; }
API error_t_ cudaHostGetDevicePointer(void **out, void *host, unsigned) {
  *out = host;
  return SUCCESS;
}
API error_t_ cudaMemset(void *, int, size_t) { return SUCCESS; }
API error_t_ cudaMemsetAsync(void *, int, size_t, stream_t) { return SUCCESS; }
API error_t_ cudaMemcpy(void *, const void *, size_t, int) { return SUCCESS; }
API error_t_ cudaMemcpyAsync(void *, const void *, size_t, int, stream_t) { return SUCCESS; }
API error_t_ cudaMemcpyPeerAsync(void *, int, const void *, int, size_t, stream_t) { return SUCCESS; }
API error_t_ cudaMemPrefetchAsync(const void *, size_t, int, stream_t) { return SUCCESS; }
API error_t_ cudaMemAdvise(const void *, size_t, int, int) { return SUCCESS; }

// The first fields of cudaPointerAttributes, which all releases since 11 have.
struct pointer_attributes {
  int type, device;
  void *device_pointer, *host_pointer;
};
API error_t_ cudaPointerGetAttributes(struct pointer_attributes *out, const void *p) {
  bool there = ask(DEVICE_LOOKUP, number(p)).status == SUCCESS;
  *out = {there ? 2 : 0, there ? here() : -2, there ? const_cast<void *>(p) : nullptr, nullptr};
  return SUCCESS;
}

// Devices.

API error_t_ cudaGetDeviceCount(int *n) {
  *n = vramyard_ordinal() + 1;
  return SUCCESS;
}
API error_t_ cudaGetDevice(int *device) {
  *device = here();
  return SUCCESS;
}
API error_t_ cudaSetDevice(int device) {
  if (!known(device)) return noted(INVALID_DEVICE);
  current_device = device;
  return SUCCESS;
}
API error_t_ cudaInitDevice(int device, unsigned, unsigned) { return known(device) ? SUCCESS : noted(INVALID_DEVICE); }
API error_t_ cudaDeviceSynchronize(void) { return noted(ask(DEVICE_SYNC).status); }
API error_t_ cudaDeviceReset(void) { return SUCCESS; }
API error_t_ cudaSetDeviceFlags(unsigned) { return SUCCESS; }
API error_t_ cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0, *greatest = -5;
  return SUCCESS;
}
API error_t_ cudaDeviceGetAttribute(int *value, int attribute, int device) {
  if (!known(device)) return noted(INVALID_DEVICE);
  switch (attribute) {
    case 10: *value = 32; break;                         // threads of a warp
    case 14: *value = 512; break;                        // alignment of textures
    case 16: *value = 108; break;                        // multiprocessors
    case 41: case 83: case 89: *value = 1; break;        // unified addressing, managed memory, concurrently
    case 75: *value = 8; break;                          // compute capability, major
    case 115: *value = 1; break;                         // memory pools
    default: *value = 0;
  }
  return SUCCESS;
}
// Only the front of cudaDeviceProp is written, which is the same in all releases since 11.
API error_t_ cudaGetDeviceProperties(void *out, int device) {
  if (!known(device)) return noted(INVALID_DEVICE);
  char *p = static_cast<char *>(out);
  memset(p, 0, 368);
  memcpy(p, device_name, sizeof device_name);
  uint64_t total = ask(DEVICE_INFO).value[1];
  int warp = 32, major = 8;
  memcpy(p + 288, &total, sizeof total);
  memcpy(p + 308, &warp, sizeof warp);
  memcpy(p + 360, &major, sizeof major);
  return SUCCESS;
}
API error_t_ cudaGetDeviceProperties_v2(void *out, int device) { return cudaGetDeviceProperties(out, device); }
API error_t_ cudaDeviceCanAccessPeer(int *can, int, int) {
  *can = 0;
  return SUCCESS;
}
API error_t_ cudaDeviceEnablePeerAccess(int, unsigned) { return noted(NOT_SUPPORTED); }
API error_t_ cudaDeviceDisablePeerAccess(int) { return noted(NOT_SUPPORTED); }
API error_t_ cudaRuntimeGetVersion(int *v) {
  *v = 12080;
  return SUCCESS;
}
API error_t_ cudaDriverGetVersion(int *v) { return cudaRuntimeGetVersion(v); }

// Errors.

API error_t_ cudaGetLastError(void) {
  int e = last_error;
  last_error = SUCCESS;
  return e;
}
API error_t_ cudaPeekAtLastError(void) { return last_error; }
API const char *cudaGetErrorString(error_t_ e) { return error_name(e); }
API const char *cudaGetErrorName(error_t_ e) {
  switch (e) {
    case SUCCESS: return "cudaSuccess";
    case INVALID_VALUE: return "cudaErrorInvalidValue";
    case OUT_OF_MEMORY: return "cudaErrorMemoryAllocation";
    case NOT_INITIALIZED: return "cudaErrorInitializationError";
    case INVALID_DEVICE: return "cudaErrorInvalidDevice";
    case INVALID_HANDLE: return "cudaErrorInvalidResourceHandle";
    case NOT_READY: return "cudaErrorNotReady";
    case NOT_SUPPORTED: return "cudaErrorNotSupported";
  }
  return "cudaErrorUnknown";
}

// Streams and events.

API error_t_ cudaStreamCreate(stream_t *s) {
  *s = new_stream();
  return SUCCESS;
}
API error_t_ cudaStreamCreateWithFlags(stream_t *s, unsigned) { return cudaStreamCreate(s); }
API error_t_ cudaStreamCreateWithPriority(stream_t *s, unsigned, int) { return cudaStreamCreate(s); }
API error_t_ cudaStreamDestroy(stream_t) { return SUCCESS; }
API error_t_ cudaStreamSynchronize(stream_t s) { return noted(ask(DEVICE_SYNC_STREAM, number(s)).status); }
API error_t_ cudaStreamQuery(stream_t s) { return noted(finished(ask(DEVICE_STREAM_DONE, number(s)))); }
API error_t_ cudaStreamWaitEvent(stream_t s, event_t e, unsigned) { return noted(ask(DEVICE_WAIT, number(s), number(e)).status); }
API error_t_ cudaStreamGetFlags(stream_t, unsigned *flags) {
  *flags = 0;
  return SUCCESS;
}
API error_t_ cudaStreamGetPriority(stream_t, int *priority) {
  *priority = 0;
  return SUCCESS;
}
API error_t_ cudaStreamIsCapturing(stream_t, int *status) {
  *status = 0;
  return SUCCESS;
}
API error_t_ cudaStreamGetCaptureInfo(stream_t, int *status, unsigned long long *id) {
  *status = 0;
  if (id != nullptr) *id = 0;
  return SUCCESS;
}
API error_t_ cudaStreamGetCaptureInfo_v2(stream_t s, int *status, unsigned long long *id, void *, void *, void *) {
  return cudaStreamGetCaptureInfo(s, status, id);
}
API error_t_ cudaThreadExchangeStreamCaptureMode(int *) { return SUCCESS; }
API error_t_ cudaLaunchHostFunc(stream_t, void (*f)(void *), void *data) {
  f(data);
  return SUCCESS;
}
API error_t_ cudaStreamAddCallback(stream_t s, void (*f)(stream_t, error_t_, void *), void *data, unsigned) {
  f(s, SUCCESS, data);
  return SUCCESS;
}
API error_t_ cudaEventCreate(event_t *e) { return noted(take(e, ask(DEVICE_NEW_EVENT))); }
API error_t_ cudaEventCreateWithFlags(event_t *e, unsigned) { return cudaEventCreate(e); }
API error_t_ cudaEventDestroy(event_t e) { return noted(ask(DEVICE_DESTROY_EVENT, number(e)).status); }
API error_t_ cudaEventRecord(event_t e, stream_t s) { return noted(ask(DEVICE_RECORD, number(e), number(s)).status); }
API error_t_ cudaEventRecordWithFlags(event_t e, stream_t s, unsigned) { return cudaEventRecord(e, s); }
API error_t_ cudaEventQuery(event_t e) { return noted(finished(ask(DEVICE_DONE, number(e)))); }
API error_t_ cudaEventSynchronize(event_t e) { return noted(ask(DEVICE_SYNC_EVENT, number(e)).status); }
API error_t_ cudaEventElapsedTime(float *ms, event_t, event_t) {
  *ms = 0;
  return SUCCESS;
}

// Pools in the order of streams. Pool 0 is the device's own.

API error_t_ cudaMallocFromPoolAsync(void **out, size_t size, pool_t pool, stream_t s) {
  *out = nullptr;
  return size == 0 ? int(SUCCESS) : noted(take(out, ask(DEVICE_ALLOC_ASYNC, pool_of(pool), size, number(s))));
}
API error_t_ cudaMallocAsync(void **out, size_t size, stream_t s) { return cudaMallocFromPoolAsync(out, size, as_pool(0), s); }
API error_t_ cudaFreeAsync(void *p, stream_t s) {
  return p == nullptr ? int(SUCCESS) : noted(ask(DEVICE_FREE_ASYNC, number(p), number(s)).status);
}
API error_t_ cudaDeviceGetDefaultMemPool(pool_t *pool, int device) {
  *pool = as_pool(0);
  return known(device) ? SUCCESS : noted(INVALID_DEVICE);
}
API error_t_ cudaDeviceGetMemPool(pool_t *pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
API error_t_ cudaDeviceSetMemPool(int, pool_t pool) { return pool_of(pool) == 0 ? SUCCESS : noted(NOT_SUPPORTED); }
API error_t_ cudaMemPoolCreate(pool_t *pool, const void *) {
  struct reply r = ask(DEVICE_NEW_POOL);
  if (r.status == SUCCESS) *pool = as_pool(r.value[0]);
  return noted(r.status);
}
API error_t_ cudaMemPoolDestroy(pool_t pool) { return noted(ask(DEVICE_DESTROY_POOL, pool_of(pool)).status); }
API error_t_ cudaMemPoolTrimTo(pool_t pool, size_t keep) { return noted(ask(DEVICE_TRIM_POOL, pool_of(pool), keep).status); }
API error_t_ cudaMemPoolSetAccess(pool_t, const void *, size_t) { return SUCCESS; }
API error_t_ cudaMemPoolSetAttribute(pool_t pool, int attribute, void *value) {
  uint64_t v = attribute <= 3 ? uint64_t(*static_cast<int *>(value)) : *static_cast<uint64_t *>(value);
  return noted(ask(DEVICE_POOL_SET, pool_of(pool), uint64_t(attribute), v).status);
}
API error_t_ cudaMemPoolGetAttribute(pool_t pool, int attribute, void *value) {
  struct reply r = ask(DEVICE_POOL_GET, pool_of(pool), uint64_t(attribute));
  if (r.status != SUCCESS) return noted(r.status);
  if (attribute <= 3) {
    *static_cast<int *>(value) = int(r.value[0]);
  } else {
    *static_cast<uint64_t *>(value) = r.value[0];
  }
  return SUCCESS;
}
