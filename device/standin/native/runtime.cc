// A stand-in for the CUDA runtime: memory, devices, errors, streams, events and pools of the device
// that the program simulates. Nothing is computed; copies are made as far as the program keeps
// contents (vramyard_copy). Settings that nothing reads are accepted. launch.cc has kernels and
// graphs.
//
// It is compiled once for each major release, because layouts and signatures differ.
#include <dlfcn.h>

#include "runtime.h"

#ifndef CUDART_MAJOR
#define CUDART_MAJOR 12
#endif

typedef int error_t_;
typedef void *stream_t, *event_t, *pool_t;

thread_local int last_error;

int noted(int e) {
  if (e != SUCCESS && e != NOT_READY) last_error = e;
  return e;
}

namespace {

uint64_t pool_of(pool_t p) { return number(p) - 1; }  // null is no pool

pool_t as_pool(uint64_t n) { return pointer(n + 1); }

// What the host may not do while a stream captures ends the capture.
int unless_capturing() { return noted(vramyard_interrupts_capture() ? CAPTURE_UNSUPPORTED : SUCCESS); }

}  // namespace

// Memory.

API error_t_ cudaMalloc(void **out, size_t size) {
  int e = unless_capturing();
  return e != SUCCESS ? e : noted(reserve(out, size));
}
API error_t_ cudaMallocManaged(void **out, size_t size, unsigned) { return noted(reserve(out, size)); }
API error_t_ cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
  size_t size;
  if (width > SIZE_MAX - 511) return noted(INVALID_VALUE);
  *pitch = (width + 511) & ~size_t(511);
  return noted(__builtin_mul_overflow(*pitch, height, &size) ? int(INVALID_VALUE) : reserve(out, size));
}
API error_t_ cudaFree(void *p) {
  int e = p == nullptr ? SUCCESS : unless_capturing();
  return e != SUCCESS ? e : noted(give_back(number(p)));
}
API error_t_ cudaMemGetInfo(size_t *free, size_t *total) {
  struct reply r = ask(DEVICE_INFO);
  if (r.status == SUCCESS) *free = r.value[0], *total = r.value[1];
  return noted(r.status);
}
API error_t_ cudaMallocHost(void **out, size_t size) {
  if (posix_memalign(out, 4096, size == 0 ? 1 : size) != 0) return noted(OUT_OF_MEMORY);
  vramyard_pin(*out, size);
  return SUCCESS;
}
API error_t_ cudaHostAlloc(void **out, size_t size, unsigned) { return cudaMallocHost(out, size); }
API error_t_ cudaFreeHost(void *p) {
  vramyard_unpin(p);
  free(p);
  return SUCCESS;
}
API error_t_ cudaHostRegister(void *p, size_t size, unsigned) {
  vramyard_pin(p, size);
  return SUCCESS;
}
API error_t_ cudaHostUnregister(void *p) {
  vramyard_unpin(p);
  return SUCCESS;
}
API error_t_ cudaHostGetDevicePointer(void **out, void *host, unsigned) {
  *out = host;
  return SUCCESS;
}
API error_t_ cudaMemset(void *p, int byte, size_t size) {
  vramyard_fill(p, uint64_t(byte) & 0xff, 1, size);
  return SUCCESS;
}
API error_t_ cudaMemsetAsync(void *p, int byte, size_t size, stream_t) { return cudaMemset(p, byte, size); }
API error_t_ cudaMemcpy(void *to, const void *from, size_t size, int) {
  vramyard_copy(to, from, size);
  return SUCCESS;
}
API error_t_ cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, stream_t) {
  return cudaMemcpy(to, from, size, kind);
}
API error_t_ cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t size, stream_t) {
  return cudaMemcpy(to, from, size, 3);
}
API error_t_ cudaMemcpy2D(void *to, size_t pitch, const void *from, size_t from_pitch, size_t width, size_t height, int) {
  for (size_t row = 0; row < height; row++) {
    vramyard_copy(static_cast<char *>(to) + row * pitch, static_cast<const char *>(from) + row * from_pitch, width);
  }
  return SUCCESS;
}
API error_t_ cudaMemcpy2DAsync(void *to, size_t pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                               int kind, stream_t) {
  return cudaMemcpy2D(to, pitch, from, from_pitch, width, height, kind);
}
API error_t_ cudaMemPrefetchAsync(const void *, size_t, int, stream_t) { return SUCCESS; }
API error_t_ cudaMemAdvise(const void *, size_t, int, int) { return SUCCESS; }

// The first fields of cudaPointerAttributes, which all releases since 11 have.
struct pointer_attributes {
  int type, device;
  void *device_pointer, *host_pointer;
};
API error_t_ cudaPointerGetAttributes(struct pointer_attributes *out, const void *p) {
  int device = -2, type = vramyard_place(p, &device);
  void *at = const_cast<void *>(p);
  *out = {type, device, type == PLACE_UNKNOWN ? nullptr : at, type == PLACE_DEVICE ? nullptr : at};
  return SUCCESS;
}
API error_t_ cudaIpcGetMemHandle(void *, void *) { return noted(NOT_SUPPORTED); }
API error_t_ cudaIpcCloseMemHandle(void *) { return noted(NOT_SUPPORTED); }

// Devices.

API error_t_ cudaGetDeviceCount(int *n) {
  *n = vramyard_devices();
  return *n > 0 ? SUCCESS : noted(NO_DEVICE);
}
API error_t_ cudaGetDevice(int *device) {
  *device = here();
  return SUCCESS;
}
API error_t_ cudaSetDevice(int device) {
  if (!known(device)) return noted(INVALID_DEVICE);
  *vramyard_current() = device;
  return SUCCESS;
}
API error_t_ cudaInitDevice(int device, unsigned, unsigned) { return known(device) ? SUCCESS : noted(INVALID_DEVICE); }
API error_t_ cudaDeviceSynchronize(void) {
  int e = unless_capturing();
  return e != SUCCESS ? e : noted(ask(DEVICE_SYNC).status);
}
API error_t_ cudaDeviceReset(void) { return SUCCESS; }
API error_t_ cudaSetDeviceFlags(unsigned) { return SUCCESS; }
API error_t_ cudaDeviceSetLimit(int, size_t) { return SUCCESS; }
API error_t_ cudaDeviceGetLimit(size_t *value, int) {
  *value = 0;
  return SUCCESS;
}
API error_t_ cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0, *greatest = -5;
  return SUCCESS;
}
API error_t_ cudaDeviceGetAttribute(int *value, int attribute, int device) {
  if (!known(device)) return noted(INVALID_DEVICE);
  *value = device_attribute(vramyard_card(device), attribute, device);
  return SUCCESS;
}
API error_t_ cudaDeviceGetPCIBusId(char *text, int size, int device) {
  if (!known(device)) return noted(INVALID_DEVICE);
  if (size < 13) return noted(INVALID_VALUE);
  snprintf(text, size_t(size), "0000:%02X:00.0", unsigned(device + 1) & 0xff);
  return SUCCESS;
}

namespace {

// Offsets in cudaDeviceProp. Release 13 removed fields.
#if CUDART_MAJOR >= 13
const struct { size_t size, clock, sms, unified, can_map, pci, copy_engines, addressing, bus, l2, threads, shared, registers,
    managed, cooperative, optin, blocks, reserved, pools, memory_clock, concurrent; }
    at = {1008, 0, 384, 388, 392, 568, 584, 588, 592, 596, 604, 624, 632, 636, 668, 672, 688, 696, 720, 0, 560};
#else
const struct { size_t size, clock, sms, unified, can_map, pci, copy_engines, addressing, bus, l2, threads, shared, registers,
    managed, cooperative, optin, blocks, reserved, pools, memory_clock, concurrent; }
    at = {1032, 348, 388, 396, 400, 584, 600, 604, 612, 616, 624, 640, 648, 652, 688, 696, 712, 720, 744, 608, 576};
#endif

// The size of cudaDeviceProp in release 11, which the name without _v2 keeps in release 12.
const size_t old_properties = 728;

// Writes the properties of a device, in at most size bytes.
int properties(void *out, int device, size_t size) {
  if (!known(device)) return noted(INVALID_DEVICE);
  const struct card *c = vramyard_card(device);
  char *p = static_cast<char *>(out);
  memset(p, 0, size);
  auto put = [p, size](size_t offset, int32_t value) {
    if (offset != 0 && offset + 4 <= size) memcpy(p + offset, &value, 4);
  };
  auto put_long = [p, size](size_t offset, uint64_t value) {
    if (offset + 8 <= size) memcpy(p + offset, &value, 8);
  };
  memcpy(p, c->name, sizeof c->name);
  p[256] = 'V', p[271] = char(device);  // uuid
  put_long(288, c->memory), put_long(296, uint64_t(c->shared_block));
  put(304, 65536), put(308, 32), put(320, 1024);
  put(324, 1024), put(328, 1024), put(332, 64);
  put(336, 0x7fffffff), put(340, 65535), put(344, 65535);
  put_long(312, 0x7fffffff), put_long(352, 65536), put_long(368, 512);
  put(360, c->major), put(364, c->minor);
  put(at.clock, c->clock), put(at.memory_clock, c->memory_clock);
  put(at.sms, c->processors), put(at.can_map, 1), put(at.concurrent, 1);
  put(at.pci, device + 1), put(at.copy_engines, 2), put(at.addressing, 1), put(at.bus, c->bus), put(at.l2, c->l2);
  put(at.threads, c->threads), put_long(at.shared, uint64_t(c->shared_processor)), put(at.registers, c->registers);
  put(at.managed, 1), put(at.cooperative, 1), put_long(at.optin, uint64_t(c->shared_optin));
  put(at.blocks, c->blocks), put_long(at.reserved, 1024), put(at.pools, 1);
  return SUCCESS;
}

}  // namespace

API error_t_ cudaGetDeviceProperties(void *out, int device) {
  return properties(out, device, CUDART_MAJOR >= 13 ? at.size : old_properties);
}
API error_t_ cudaGetDeviceProperties_v2(void *out, int device) { return properties(out, device, at.size); }
API error_t_ cudaDeviceCanAccessPeer(int *can, int a, int b) {
  *can = a != b && known(a) && known(b);
  return SUCCESS;
}
API error_t_ cudaDeviceEnablePeerAccess(int d, unsigned) { return known(d) ? SUCCESS : noted(INVALID_DEVICE); }
API error_t_ cudaDeviceDisablePeerAccess(int d) { return known(d) ? SUCCESS : noted(INVALID_DEVICE); }
API error_t_ cudaRuntimeGetVersion(int *v) {
  *v = CUDART_MAJOR == 11 ? 11070 : CUDART_MAJOR == 12 ? 12080 : 13000;
  return SUCCESS;
}
API error_t_ cudaDriverGetVersion(int *v) {
  *v = 13020;
  return SUCCESS;
}
// The driver stands beside this library in the same program.
API error_t_ cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned version, unsigned long long flags,
                                              int *found) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto get = reinterpret_cast<int (*)(const char *, void **, int, uint64_t, int *)>(
      driver != nullptr ? dlsym(driver, "cuGetProcAddress_v2") : nullptr);
  *out = nullptr;
  if (found != nullptr) *found = 1;
  return get == nullptr ? noted(SYMBOL_NOT_FOUND) : (get(name, out, int(version), flags, found), SUCCESS);
}
API error_t_ cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags, int *found) {
  return cudaGetDriverEntryPointByVersion(name, out, 0, flags, CUDART_MAJOR >= 12 ? found : nullptr);
}

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
  *s = vramyard_token();
  return SUCCESS;
}
API error_t_ cudaStreamCreateWithFlags(stream_t *s, unsigned) { return cudaStreamCreate(s); }
API error_t_ cudaStreamCreateWithPriority(stream_t *s, unsigned, int) { return cudaStreamCreate(s); }
API error_t_ cudaStreamDestroy(stream_t) { return SUCCESS; }
API error_t_ cudaStreamSynchronize(stream_t s) {
  return captured(s) ? unless_capturing() : noted(ask(DEVICE_SYNC_STREAM, number(s)).status);
}
API error_t_ cudaStreamQuery(stream_t s) { return noted(finished(ask(DEVICE_STREAM_DONE, number(s)))); }
API error_t_ cudaStreamWaitEvent(stream_t s, event_t e, unsigned) {
  joins_capture(s, e);
  return noted(ask(DEVICE_WAIT, number(s), number(e)).status);
}
API error_t_ cudaStreamGetFlags(stream_t, unsigned *flags) {
  *flags = 0;
  return SUCCESS;
}
API error_t_ cudaStreamGetPriority(stream_t, int *priority) {
  *priority = 0;
  return SUCCESS;
}
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
API error_t_ cudaEventRecord(event_t e, stream_t s) {
  recorded_in_capture(e, s);
  return noted(ask(DEVICE_RECORD, number(e), number(s)).status);
}
API error_t_ cudaEventRecordWithFlags(event_t e, stream_t s, unsigned) { return cudaEventRecord(e, s); }
API error_t_ cudaEventQuery(event_t e) { return noted(query_event(e, __builtin_return_address(0))); }
API error_t_ cudaEventSynchronize(event_t e) { return noted(ask(DEVICE_SYNC_EVENT, number(e)).status); }
// Programs divide by it.
API error_t_ cudaEventElapsedTime(float *ms, event_t, event_t) {
  *ms = 1;
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
  return noted(set_pool(pool_of(pool), attribute, value));
}
API error_t_ cudaMemPoolGetAttribute(pool_t pool, int attribute, void *value) {
  return noted(get_pool(pool_of(pool), attribute, value));
}
