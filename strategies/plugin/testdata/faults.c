/* Allocators that do each what no allocator may do, at their seventh request. Until then, and where
 * not, every block is memory of the device's own, which is right. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"

#define BAD 7

static int requests;
static void *last;

void *direct_alloc(size_t size, int device, cudaStream_t stream) {
  void *p = NULL;
  (void)device, (void)stream;
  return cudaMalloc(&p, size) == 0 ? last = p : NULL;
}

void direct_free(void *p, size_t size, int device, cudaStream_t stream) {
  (void)size, (void)device, (void)stream;
  cudaFree(p);
}

static void *deeper(int n) {
  volatile char room[1 << 20];
  room[n & 1] = 1;
  return (char *)deeper(n + 1) + room[0];
}

/* ALLOCATOR defines one that does something else at its seventh request. */
#define ALLOCATOR(name, instead)                                  \
  void *name(size_t size, int device, cudaStream_t stream) {      \
    if (++requests == BAD) instead;                               \
    return direct_alloc(size, device, stream);                    \
  }

ALLOCATOR(overlap, return (char *)last + 512)
ALLOCATOR(twice, return last)
ALLOCATOR(misaligned, return (char *)direct_alloc(size + 512, device, stream) + 16)
ALLOCATOR(outside, return (void *)0x5000)
ALLOCATOR(past_end, return (char *)direct_alloc(size, device, stream) + 512)
ALLOCATOR(wraps, return (void *)(UINTPTR_MAX & ~(uintptr_t)511))
ALLOCATOR(on_heap, return malloc(size))
ALLOCATOR(takes_back, { void *p = last; cudaFree(p); return direct_alloc(size, device, stream); })
ALLOCATOR(crash, *(volatile int *)0x10 = 1)
ALLOCATOR(wild, memset(last, 1, 64)) /* there is no memory of this process at addresses of the device */
ALLOCATOR(divide, { volatile int none = 0; return (void *)(uintptr_t)(requests / none); })
ALLOCATOR(gives_up, abort())
ALLOCATOR(leaves, exit(3))
ALLOCATOR(hangs, for (;;) pause())
ALLOCATOR(spins, for (volatile int i = 0;; i++) cudaGetDevice((int[1]){0}))
ALLOCATOR(refuses, return NULL)
ALLOCATOR(deep, return deeper(1))

void *complains(size_t size, int device, cudaStream_t stream) {
  if (++requests == BAD) {
    fprintf(stderr, "the end is near\nfatal: out of patience\n");
    abort();
  }
  return direct_alloc(size, device, stream);
}

void *prints(size_t size, int device, cudaStream_t stream) {
  for (int i = 0; i < 200; i++) {
    printf("allocating %zu bytes, which is worth a line of its own\n", size);
    fprintf(stderr, "and another one\n");
  }
  fflush(stdout);
  return direct_alloc(size, device, stream);
}

static void *sleeper(void *none) {
  for (;;) pause();
  return none;
}

/* A thread for each request, which nobody ends. */
void *threads(size_t size, int device, cudaStream_t stream) {
  pthread_t t;
  pthread_create(&t, NULL, sleeper, NULL);
  return direct_alloc(size, device, stream);
}

/* The device is asked by another thread. */
struct order {
  size_t size;
  void *p;
};

static void *errand(void *arg) {
  struct order *o = arg;
  o->p = direct_alloc(o->size, 0, NULL);
  return NULL;
}

void *elsewhere(size_t size, int device, cudaStream_t stream) {
  struct order o = {size, NULL};
  pthread_t t;
  (void)device, (void)stream;
  pthread_create(&t, NULL, errand, &o);
  pthread_join(t, NULL);
  return o.p;
}

void crash_in_free(void *p, size_t size, int device, cudaStream_t stream) {
  if (size == 1234) *(volatile int *)p = 1;
  direct_free(p, size, device, stream);
}

void crash_in_init(int devices) {
  (void)devices;
  abort();
}

/* Says what it is told by ending with it. */
void tell_init(int devices) { exit(40 + devices); }

void tell_fraction(double fraction, int device) { exit((int)(fraction * 100) + device); }

void *wrong_base(void *p, size_t *size) {
  *size = 1;
  return p;
}

void *right_base(void *p, size_t *size) {
  (void)size;
  return p;
}
