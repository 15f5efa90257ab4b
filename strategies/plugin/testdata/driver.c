/* An allocator over the driver's virtual memory, by names that it looks up itself, and one over its
 * pools in the order of streams. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "cuda.h"

typedef unsigned long long address;
struct access { int type, id, flags; };

static int (*granularity)(size_t *, const void *, int);
static int (*reserve)(address *, size_t, size_t, address, unsigned long long);
static int (*unreserve)(address, size_t);
static int (*create)(address *, size_t, const void *, unsigned long long);
static int (*release)(address);
static int (*map)(address, size_t, size_t, address, unsigned long long);
static int (*unmap)(address, size_t);
static int (*allow)(address, size_t, const struct access *, size_t);

static void look_up(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*find)(const char *, void *, int, uint64_t) = 0;
  *(void **)&find = dlsym(driver, "cuGetProcAddress");
  find("cuMemGetAllocationGranularity", &granularity, 12000, 0);
  find("cuMemAddressReserve", &reserve, 12000, 0);
  find("cuMemAddressFree", &unreserve, 12000, 0);
  find("cuMemCreate", &create, 12000, 0);
  find("cuMemRelease", &release, 12000, 0);
  find("cuMemMap", &map, 12000, 0);
  find("cuMemUnmap", &unmap, 12000, 0);
  find("cuMemSetAccess", &allow, 12000, 0);
}

/* What a runtime that is linked in statically does first; it then tells of no memory. */
void *static_alloc(size_t size, int device, cudaStream_t stream) {
  (void)size, (void)device, (void)stream;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  const void *table = NULL;
  int (*tables)(const void **, const void *) = 0;
  *(void **)&tables = dlsym(driver, "cuGetExportTable");
  if (tables == NULL || tables(&table, "0123456789abcdef") != 0) return NULL;
  return (void *)table;
}

/* A range for each block, with whole pages behind it. */
void *vmm_alloc(size_t size, int device, cudaStream_t stream) {
  (void)device, (void)stream;
  size_t page = 0;
  address at = 0, h = 0;
  char prop[32] = {1, [8] = 1};
  struct access a = {1, 0, 3};
  if (granularity == NULL) look_up();
  if (size == 0 || size > (size_t)1 << 40 || granularity(&page, prop, 0) != 0) return NULL;
  size_t whole = (size + page - 1) / page * page;
  if (reserve(&at, whole + page, 0, 0, 0) != 0) return NULL;
  if (create(&h, whole, prop, 0) == 0) {
    if (map(at, whole, 0, h, 0) == 0) {
      release(h); /* the memory stays while it is mapped */
      if (allow(at, whole, &a, 1) == 0) return (void *)at;
      unmap(at, whole);
    } else {
      release(h);
    }
  }
  unreserve(at, whole + page);
  return NULL;
}

void vmm_free(void *p, size_t size, int device, cudaStream_t stream) {
  (void)device, (void)stream;
  size_t page = 0;
  char prop[32] = {1, [8] = 1};
  if (granularity(&page, prop, 0) != 0) return;
  size_t whole = (size + page - 1) / page * page;
  unmap((address)p, whole);
  unreserve((address)p, whole + page);
}

/* Forgets to map the last page. */
void *hole_alloc(size_t size, int device, cudaStream_t stream) {
  return size > (size_t)2 << 20 ? vmm_alloc(size - ((size_t)2 << 20), device, stream) : vmm_alloc(size, device, stream);
}

void *pool_alloc(size_t size, int device, cudaStream_t stream) {
  void *p = NULL;
  (void)device;
  return cudaMallocAsync(&p, size, stream) == 0 ? p : NULL;
}

void pool_free(void *p, size_t size, int device, cudaStream_t stream) {
  (void)size, (void)device;
  if (p != NULL) cudaFreeAsync(p, stream);
}
