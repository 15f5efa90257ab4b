// A library without a model of its own is made of these, one line for each function that a program
// imports. functions.txt says which. The definitions are weak: a model of the function wins.
#ifndef VRAMYARD_STUB_H
#define VRAMYARD_STUB_H

#include "standin.h"

#define STUB extern "C" __attribute__((visibility("default"), weak))
#define ARGUMENTS                                                                                                      \
  uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8, \
      uint64_t a9, uint64_t a10, uint64_t a11, uint64_t a12, uint64_t a13, uint64_t a14, uint64_t a15, uint64_t a16,       \
      uint64_t a17, uint64_t a18, uint64_t a19
#define TAKEN                                                                                                  \
  uint64_t a[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19};  \
  (void)a

// Success, and nothing is done.
#define DONE(name) \
  STUB uint64_t name(void) { return 0; }

// Success, and a new handle in *argument n.
#define CREATES(name, n)                                      \
  STUB uint64_t name(ARGUMENTS) {                             \
    TAKEN;                                                    \
    if (a[n] != 0) *static_cast<void **>(pointer(a[n])) = vramyard_token(); \
    return 0;                                                 \
  }

// Success, and zero in *argument n, an int or a size_t.
#define ZERO(name, n)                                                     \
  STUB uint64_t name(ARGUMENTS) {                                         \
    TAKEN;                                                                \
    if (a[n] != 0) *static_cast<int32_t *>(pointer(a[n])) = 0;            \
    return 0;                                                             \
  }
#define ZERO_SIZE(name, n)                                                \
  STUB uint64_t name(ARGUMENTS) {                                         \
    TAKEN;                                                                \
    if (a[n] != 0) *static_cast<uint64_t *>(pointer(a[n])) = 0;           \
    return 0;                                                             \
  }

// Success, and a work area of no bytes in *argument n, an int or a size_t; or in two of them.
#define WORK(name, n)                                                     \
  STUB uint64_t name(ARGUMENTS) {                                         \
    TAKEN;                                                                \
    if (a[n] != 0) *static_cast<int32_t *>(pointer(a[n])) = 0;            \
    vramyard_guessed(GUESSED_OTHER, nullptr, nullptr);                    \
    return 0;                                                             \
  }
#define AREA(name, n)                                                     \
  STUB uint64_t name(ARGUMENTS) {                                         \
    TAKEN;                                                                \
    if (a[n] != 0) *static_cast<uint64_t *>(pointer(a[n])) = 0;           \
    vramyard_guessed(GUESSED_OTHER, nullptr, nullptr);                    \
    return 0;                                                             \
  }
#define AREAS(name, n)                                                    \
  STUB uint64_t name(ARGUMENTS) {                                         \
    TAKEN;                                                                \
    if (a[n + 1] != 0) *static_cast<uint64_t *>(pointer(a[n + 1])) = 0;   \
    if (a[n] != 0) *static_cast<uint64_t *>(pointer(a[n])) = 0;           \
    vramyard_guessed(GUESSED_OTHER, nullptr, nullptr);                    \
    return 0;                                                             \
  }

// A text: the function returns it, or its status.
#define TEXT(name) \
  STUB const char *name(void) { return "operation not supported"; }

// An error: the function is not modelled. It is said once.
#define FAILS(name, code)                                                   \
  STUB uint64_t name(void) {                                                \
    static bool said;                                                       \
    bool again = __atomic_exchange_n(&said, true, __ATOMIC_RELAXED);        \
    return again ? uint64_t(code) : vramyard_unsupported(#name, code);      \
  }

#endif
