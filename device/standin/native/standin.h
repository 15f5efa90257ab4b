// What all stand-ins are made of: they ask the device through the program that they are loaded
// into, the host of plug-ins (strategies/plugin) or the user's program (process.cc).
#ifndef VRAMYARD_STANDIN_H
#define VRAMYARD_STANDIN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

#define API extern "C" __attribute__((visibility("default")))

// What a program is told of a device. device/standin/card.go has the same layout in Go, and a test
// compares the two.
struct card {
  char name[256];
  uint64_t memory;               // bytes
  int32_t major, minor;          // compute capability
  int32_t processors;            // multiprocessors
  int32_t threads, blocks;       // most of a multiprocessor
  int32_t shared_block;          // bytes of shared memory of a block
  int32_t shared_optin;          // with opt-in
  int32_t shared_processor;      // of a multiprocessor
  int32_t registers;             // of a multiprocessor
  int32_t l2;                    // bytes of the L2 cache
  int32_t bus;                   // bits of the memory bus
  int32_t clock, memory_clock;   // kHz
  int32_t unused;                // to a multiple of eight bytes
};

// The kinds of memory that a pointer can point to, numbered as in cudaPointerAttributes.
enum place : int { PLACE_UNKNOWN = 0, PLACE_HOST = 1, PLACE_DEVICE = 2 };

// The program answers these.
extern "C" {
// A call of a device: one of device_op with the number of the device in the upper half. It returns
// one of device_answer.
uint64_t vramyard_device(uint64_t op, const uint64_t *arg, uint64_t *result);
// The number of devices, and the device that a new thread uses.
int vramyard_devices(void);
int vramyard_first(void);
const struct card *vramyard_card(int device);
// The current device of this thread; -1 before it chose one.
int *vramyard_current(void);
// The kind of memory at an address, and its device.
int vramyard_place(const void *p, int *device);
// Host memory becomes pinned or stops to be.
void vramyard_pin(const void *p, size_t size);
void vramyard_unpin(const void *p);
// Copies memory, or fills it with words of width bytes, as far as the program keeps contents.
void vramyard_copy(void *to, const void *from, size_t size);
void vramyard_fill(void *to, uint64_t word, int width, size_t size);
// Copies contents of the device, and reports whether all of them are true.
bool vramyard_known(void *to, const void *from, size_t size);
// A kernel changes size bytes of one block.
void vramyard_changed(void *at, size_t size);
// A handle for what has no device behind it, such as a stream: a number that no trace has.
void *vramyard_token(void);
// Counts a call that takes a work area of unknown size: kind is a guessed_kind, the areas are
// the memory that the program gives it, null for none.
void vramyard_guessed(int kind, const void *area, const void *reserve);
// The answer of a function that is not modelled: it says so once and returns code.
uint64_t vramyard_unsupported(const char *name, uint64_t code);
}

// Errors. The runtime and the driver have the same numbers for what is used here.
enum status : int {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  INVALID_DEVICE_FUNCTION = 98,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  SYMBOL_NOT_FOUND = 500,
  NOT_READY = 600,
  NOT_SUPPORTED = 801,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  ILLEGAL_CAPTURE_STATE = 401,
  UNKNOWN = 999,
};

namespace {

// The memory that malloc or calloc returned. A program whose host has no more ends.
inline void *checked(void *memory) {
  if (memory == nullptr) {
    dprintf(2, "vramyard: the host is out of memory\n");
    abort();
  }
  return memory;
}

struct reply {
  uint64_t value[2];
  int status;
};

inline int here() {
  int d = *vramyard_current();
  return d < 0 ? vramyard_first() : d;
}

inline bool known(int device) { return device >= 0 && device < vramyard_devices(); }

inline struct reply ask_device(int device, uint64_t op, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0) {
  uint64_t arg[4] = {a, b, c, d};
  struct reply r = {};
  switch (vramyard_device(op | uint64_t(device) << 32, arg, r.value)) {
    case ANSWER_DONE: r.status = SUCCESS; break;
    case ANSWER_OUT_OF_MEMORY: r.status = OUT_OF_MEMORY; break;
    case ANSWER_INVALID: r.status = INVALID_VALUE; break;
    case ANSWER_UNSUPPORTED: r.status = NOT_SUPPORTED; break;
    case ANSWER_NOBODY: r.status = NOT_INITIALIZED; break;
    default: r.status = UNKNOWN;
  }
  return r;
}

inline struct reply ask(uint64_t op, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0) {
  return ask_device(here(), op, a, b, c, d);
}

template <typename T>
inline uint64_t number(T *p) {
  return uint64_t(uintptr_t(p));
}

inline void *pointer(uint64_t n) { return reinterpret_cast<void *>(uintptr_t(n)); }

// Gives *out what a reply has, if it has it.
template <typename T>
inline int take(T *out, struct reply r) {
  if (r.status == SUCCESS) *out = T(r.value[0]);
  return r.status;
}

inline int take(void **out, struct reply r) {
  if (r.status == SUCCESS) *out = pointer(r.value[0]);
  return r.status;
}

// Memory of size bytes; none for no bytes, as CUDA has it.
inline int reserve(void **out, size_t size) {
  *out = nullptr;
  return size == 0 ? int(SUCCESS) : take(out, ask(DEVICE_RESERVE, size));
}

inline int give_back(uint64_t a) { return a == 0 ? int(SUCCESS) : ask(DEVICE_RELEASE, a).status; }

// Whether what is asked by a query has finished.
inline int finished(struct reply r) { return r.status != SUCCESS || r.value[0] != 0 ? r.status : int(NOT_READY); }

inline const char *error_name(int e) {
  switch (e) {
    case SUCCESS: return "no error";
    case INVALID_VALUE: return "invalid argument";
    case OUT_OF_MEMORY: return "out of memory";
    case NOT_INITIALIZED: return "initialization error";
    case NO_DEVICE: return "no CUDA-capable device is detected";
    case INVALID_DEVICE: return "invalid device ordinal";
    case INVALID_HANDLE: return "invalid resource handle";
    case NOT_READY: return "device not ready";
    case NOT_SUPPORTED: return "operation not supported";
    case CAPTURE_UNSUPPORTED: return "operation not permitted when stream is capturing";
    case CAPTURE_INVALIDATED: return "operation failed due to a previous error during capture";
  }
  return "unknown error";
}

}  // namespace

#endif
