// A program of tests, and in HOST's place the process that the stand-ins ask: a device whose memory
// is the host's.
#ifndef VRAMYARD_CHECK_H
#define VRAMYARD_CHECK_H

#include <stdio.h>

#include "standin.h"

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) {                                             \
      printf("%s:%d: want %s\n", __FILE__, __LINE__, #condition);   \
      exit(1);                                                      \
    }                                                               \
  } while (0)

#ifdef HOST
const int most_test_devices = 16;
uint64_t events;
int unsupported;  // calls
int guesses[GUESSED_KINDS];
int device_now = 0;
size_t changed;
const void *areas[2];  // of the last guess

API uint64_t vramyard_device(uint64_t op, const uint64_t *arg, uint64_t *result) {
  switch (op & 0xffffffff) {
    case DEVICE_RESERVE: result[0] = number(malloc(arg[0])); return ANSWER_DONE;
    case DEVICE_RELEASE: free(pointer(arg[0])); return ANSWER_DONE;
    case DEVICE_INFO: result[1] = 1000 + (op >> 32); return ANSWER_DONE;
    case DEVICE_NEW_EVENT: result[0] = ++events; return ANSWER_DONE;
    case DEVICE_DONE: case DEVICE_STREAM_DONE: result[0] = 1; return ANSWER_DONE;
  }
  return ANSWER_DONE;
}
API int vramyard_devices(void) { return most_test_devices; }
API int vramyard_first(void) { return 0; }
API const struct card *vramyard_card(int) {
  static struct card c = {};
  c.major = 8, c.threads = 2048, c.blocks = 32, c.registers = 65536, c.shared_processor = 167936;
  return &c;
}
API int *vramyard_current(void) { return &device_now; }
API int vramyard_place(const void *, int *device) { return *device = 0, int(PLACE_DEVICE); }
API void vramyard_pin(const void *, size_t) {}
API void vramyard_unpin(const void *) {}
API void vramyard_copy(void *to, const void *from, size_t size) { memmove(to, from, size); }
API void vramyard_fill(void *to, uint64_t word, int width, size_t size) {
  size_t n = size_t(width);
  for (size_t i = 0; i + n <= size; i += n) memcpy(static_cast<char *>(to) + i, &word, n);
}
API bool vramyard_known(void *to, const void *from, size_t size) { return memmove(to, from, size), true; }
API void vramyard_changed(void *, size_t size) { changed += size; }
API void *vramyard_token(void) {
  static uint64_t last = uint64_t(1) << 62;
  return pointer(last += 16);
}
API void vramyard_guessed(int kind, const void *area, const void *reserve) {
  guesses[kind]++;
  areas[0] = area, areas[1] = reserve;
}
API uint64_t vramyard_unsupported(const char *, uint64_t code) { return unsupported++, code; }
#endif

#endif
