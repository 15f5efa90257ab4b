/* The interface of libvramyard.so: strategies of Vramyard behind PyTorch's pluggable allocator.
 *
 * The functions of the first part are those that CUDAPluggableAllocator wants. Streams are what PyTorch hands
 * over, a cudaStream_t; addresses are those of device memory. All functions may be called from any thread.
 * Functions that say so throw, from a C program they may not be called where they would.
 *
 * Configured by the environment, read at the first call that needs it: docs/pytorch.md lists the variables. */
#ifndef VRAMYARD_H
#define VRAMYARD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns an address on a stream of a device, NULL for a size of 0. Throws a class derived from std::bad_alloc
 * if there is no memory, one derived from std::runtime_error for anything else. */
void *vramyard_alloc(size_t size, int device, void *stream);

/* Takes back an address. The size is not looked at. Never throws: what is wrong is counted in the
 * statistics, and told by vramyard_last_error. */
void vramyard_free(void *ptr, size_t size, int device, void *stream);

/* Says how many devices there are, 0 for not known yet. Throws if the environment is wrong. */
void vramyard_init(int device_count);

/* Gives cached memory back (torch.cuda.empty_cache). Throws. */
void vramyard_reset(void);

/* Bounds what may be held of a device by a share of it. Throws. */
void vramyard_memory_fraction(double fraction, int device);

/* Returns the start of the region that holds an address and writes its size, or returns the address. */
void *vramyard_base_alloc(void *ptr, size_t *size);

/* Says that a stream uses memory. Throws if it is not live. */
void vramyard_record_stream(void *ptr, void *stream);

/* vramyard_begin_allocate_to_pool, vramyard_end_allocate_to_pool and vramyard_release_pool have types of C++, in
 * shim.cc. They throw where the strategy has no private pools. */

/* For programs without exceptions: writes the address to out and returns 0; 1 if there is no memory, 2 for
 * anything else, with the reason in vramyard_last_error. */
int vramyard_try_alloc(void **out, size_t size, int device, void *stream);

/* Returns the statistics as JSON. The text is the thread's until its next call of this function. */
const char *vramyard_stats_json(void);

/* Writes what was recorded so far; NULL or "" is the file that VRAMYARD_TRACE names. Returns 0, or 2 with the
 * reason in vramyard_last_error. */
int vramyard_dump_trace(const char *path);

/* Returns the version of the library. */
const char *vramyard_version(void);

/* Returns the last error that this thread met, "" if there was none. The text is the thread's until the next. */
const char *vramyard_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
