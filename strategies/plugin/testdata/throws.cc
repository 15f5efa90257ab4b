// An allocator in C++ whose seventh request ends in an exception, and others that end so otherwise.
#include <new>
#include <stdexcept>

#include "cuda.h"

static int requests;

static void *direct(size_t size) {
  void *p = nullptr;
  return cudaMalloc(&p, size) == 0 ? p : nullptr;
}

extern "C" void *throws(size_t size, int, cudaStream_t) {
  if (++requests == 7) throw std::runtime_error("the pool of this plug-in is used up");
  return direct(size);
}

extern "C" void *throws_number(size_t size, int, cudaStream_t) {
  if (++requests == 7) throw 7;
  return direct(size);
}

extern "C" void *throws_through(size_t size, int, cudaStream_t) noexcept {
  if (++requests == 7) throw std::bad_alloc();
  return direct(size);
}

extern "C" void frees(void *p, size_t, int, cudaStream_t) { cudaFree(p); }

extern "C" void free_throws(void *, size_t, int, cudaStream_t) { throw std::logic_error("not mine"); }

void *mangled(size_t size, int, cudaStream_t) { return direct(size); }
