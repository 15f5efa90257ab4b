// What both stand-ins are made of: they ask the device through the host that they are loaded into.
#ifndef VRAMYARD_STANDIN_H
#define VRAMYARD_STANDIN_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

extern "C" uint64_t vramyard_device(uint64_t op, const uint64_t *arg, uint64_t *result);
extern "C" int vramyard_ordinal(void);

// Errors. The runtime and the driver have the same numbers for what is used here.
enum status : int {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  INVALID_DEVICE = 101,
  INVALID_HANDLE = 400,
  NOT_READY = 600,
  NOT_SUPPORTED = 801,
  UNKNOWN = 999,
};

namespace {

struct reply {
  uint64_t value[2];
  int status;
};

struct reply ask(uint64_t op, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0) {
  uint64_t arg[4] = {a, b, c, d};
  struct reply r = {};
  switch (vramyard_device(op, arg, r.value)) {
    case ANSWER_DONE: r.status = SUCCESS; break;
    case ANSWER_OUT_OF_MEMORY: r.status = OUT_OF_MEMORY; break;
    case ANSWER_INVALID: r.status = INVALID_VALUE; break;
    case ANSWER_UNSUPPORTED: r.status = NOT_SUPPORTED; break;
    case ANSWER_NOBODY: r.status = NOT_INITIALIZED; break;
    default: r.status = UNKNOWN;
  }
  return r;
}

template <typename T>
uint64_t number(T *p) {
  return uint64_t(uintptr_t(p));
}

void *pointer(uint64_t n) { return reinterpret_cast<void *>(uintptr_t(n)); }

// Gives *out what a reply has, if it has it.
template <typename T>
int take(T *out, struct reply r) {
  if (r.status == SUCCESS) *out = T(r.value[0]);
  return r.status;
}

int take(void **out, struct reply r) {
  if (r.status == SUCCESS) *out = pointer(r.value[0]);
  return r.status;
}

// Memory of size bytes; none for no bytes, as CUDA has it.
int reserve(void **out, size_t size) {
  *out = nullptr;
  return size == 0 ? int(SUCCESS) : take(out, ask(DEVICE_RESERVE, size));
}

int give_back(uint64_t a) { return a == 0 ? int(SUCCESS) : ask(DEVICE_RELEASE, a).status; }

// Whether what is asked by a query has finished.
int finished(struct reply r) { return r.status != SUCCESS || r.value[0] != 0 ? r.status : int(NOT_READY); }

// Streams are numbers that no trace has: the device needs none to be made.
void *new_stream() {
  static uint64_t last = uint64_t(1) << 62;
  return pointer(__atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST));
}

const char *error_name(int e) {
  switch (e) {
    case SUCCESS: return "success";
    case INVALID_VALUE: return "invalid argument";
    case OUT_OF_MEMORY: return "out of memory";
    case NOT_INITIALIZED: return "initialization error";
    case INVALID_DEVICE: return "invalid device ordinal";
    case INVALID_HANDLE: return "invalid resource handle";
    case NOT_READY: return "device not ready";
    case NOT_SUPPORTED: return "operation not supported";
  }
  return "unknown error";
}

const char device_name[] = "Vramyard's simulated device";

}  // namespace

#endif
