// What the files of the CUDA runtime, and the driver, share.
#ifndef VRAMYARD_RUNTIME_H
#define VRAMYARD_RUNTIME_H

#include <dlfcn.h>

#include "standin.h"

typedef int error_t_;
typedef void *stream_t, *event_t, *pool_t;

// Stores an error of this thread until cudaGetLastError asks for it, and returns it.
int noted(int e);

// Whether a call that waits for the device or takes memory from it is forbidden now because a
// stream captures. Such a call ends the capture. The driver looks the function up by its name.
API bool vramyard_interrupts_capture();

// Whether a stream captures.
bool captured(stream_t s);

// An event recorded on a capturing stream makes the streams that wait for it capture too.
void recorded_in_capture(event_t e, stream_t s);
void joins_capture(stream_t s, event_t e);

namespace {

// Whether an event is done. If an allocator asks, PyTorch's or one of libvramyard, it is said once.
inline int query_event(event_t e, const void *caller) {
  static bool said;
  Dl_info about;
  if (!__atomic_load_n(&said, __ATOMIC_RELAXED) && dladdr(caller, &about) != 0 &&
      (strstr(about.dli_fname, "libc10_cuda") != nullptr || strstr(about.dli_fname, "libvramyard") != nullptr) &&
      !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
    ask(DEVICE_MARK, MARK_WAITED);
  }
  return finished(ask(DEVICE_DONE, number(e)));
}

// The attributes of a pool: the first three are flags of four bytes, the others have eight.
inline int set_pool(uint64_t pool, int attribute, const void *value) {
  uint64_t v = attribute <= 3 ? uint64_t(*static_cast<const int *>(value)) : *static_cast<const uint64_t *>(value);
  return ask(DEVICE_POOL_SET, pool, uint64_t(attribute), v).status;
}

inline int get_pool(uint64_t pool, int attribute, void *value) {
  struct reply r = ask(DEVICE_POOL_GET, pool, uint64_t(attribute));
  if (r.status == SUCCESS && attribute <= 3) *static_cast<int *>(value) = int(r.value[0]);
  if (r.status == SUCCESS && attribute > 3) *static_cast<uint64_t *>(value) = r.value[0];
  return r.status;
}

// The attribute of a device; the runtime and the driver have the same numbers.
inline int device_attribute(const struct card *c, int attribute, int device) {
  switch (attribute) {
    case 1: case 2: case 3: return 1024;  // threads of a block
    case 4: return 64;
    case 5: return 0x7fffffff;            // blocks of a grid
    case 6: case 7: return 65535;
    case 8: return c->shared_block;
    case 9: return 65536;                 // bytes of constant memory
    case 10: return 32;                   // threads of a warp
    case 11: return 0x7fffffff;           // bytes of a pitch
    case 12: return 65536;                // registers of a block
    case 13: return c->clock;
    case 14: return 512;                  // alignment of textures
    case 16: return c->processors;
    case 19: return 1;                    // host memory can be mapped
    case 31: return 1;                    // kernels run concurrently
    case 33: return device + 1;           // PCI bus
    case 36: return c->memory_clock;
    case 37: return c->bus;
    case 38: return c->l2;
    case 39: return c->threads;
    case 40: return 2;                    // copy engines
    case 41: return 1;                    // unified addressing
    case 75: return c->major;
    case 76: return c->minor;
    case 78: return 1;                    // priorities of streams
    case 81: return c->shared_processor;
    case 82: return c->registers;
    case 83: return 1;                    // managed memory
    case 89: return 1;                    // concurrently with the host
    case 95: return 1;                    // cooperative launches
    case 97: return c->shared_optin;
    case 102: case 103: return 1;         // virtual memory, handles as files
    case 106: return c->blocks;
    case 111: return 1024;                // bytes of shared memory that a block loses
    case 115: return 1;                   // memory pools
  }
  return 0;
}

}  // namespace

#endif
