/* The interface of libvramyard.so: strategies of Vramyard behind PyTorch's pluggable allocator.
 *
 * The functions up to vramyard_record_stream are those that CUDAPluggableAllocator takes. A stream is a
 * cudaStream_t, an address is an address of device memory. All functions may be called from any thread. Where a
 * comment says "Throws", the function throws a C++ exception on an error, so a C program must not call it.
 *
 * Environment variables configure the library. They are read at the first call that needs them; docs/pytorch.md
 * lists them. */
#ifndef VRAMYARD_H
#define VRAMYARD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates memory of a device for a stream; NULL if the size is 0. Throws a subclass of std::bad_alloc if there is
 * no memory, or PyTorch's OutOfMemoryError in a program that has it, and a subclass of std::runtime_error on any
 * other error. */
void *vramyard_alloc(size_t size, int device, void *stream);

/* Frees memory. The size is ignored. Never throws: errors are counted in the statistics, and
 * vramyard_last_error returns the last one. */
void vramyard_free(void *ptr, size_t size, int device, void *stream);

/* Sets the number of devices; 0 if it is not known yet. Throws if an environment variable is invalid. */
void vramyard_init(int device_count);

/* Releases cached memory to the device (torch.cuda.empty_cache). Throws. */
void vramyard_reset(void);

/* Limits the memory held from a device to a share of its capacity, 0 to 1. Throws. */
void vramyard_memory_fraction(double fraction, int device);

/* Returns the start of the region that contains an address, and writes the size of the region. Returns the
 * address itself if no region contains it. */
void *vramyard_base_alloc(void *ptr, size_t *size);

/* Records that another stream uses a block. Throws if no live block starts at the address. */
void vramyard_record_stream(void *ptr, void *stream);

/* vramyard_begin_allocate_to_pool, vramyard_end_allocate_to_pool and vramyard_release_pool have C++ types, see
 * shim.cc. They throw if the strategy has no private pools. */

/* vramyard_alloc without exceptions: writes the address to out and returns 0. On an error it returns 1 if there is
 * no memory and 2 otherwise; vramyard_last_error returns the reason. */
int vramyard_try_alloc(void **out, size_t size, int device, void *stream);

/* Returns the statistics as JSON. The text is valid until the next call of this function by the same thread. */
const char *vramyard_stats_json(void);

/* Writes the trace recorded so far to a file; NULL or "" stands for the file in VRAMYARD_TRACE. Returns 0, or 2 on an
 * error; vramyard_last_error returns the reason. */
int vramyard_dump_trace(const char *path);

/* Returns the version of the library. */
const char *vramyard_version(void);

/* Returns the last error of this thread, "" if there was none. The text is valid until the thread's next error. */
const char *vramyard_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
