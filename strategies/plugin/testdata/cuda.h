/* The part of the CUDA runtime that the plug-ins of the tests use. */
#ifndef CUDA_H
#define CUDA_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct stream *cudaStream_t;
typedef struct event *cudaEvent_t;
int cudaMalloc(void **p, size_t size);
int cudaFree(void *p);
int cudaMemGetInfo(size_t *free, size_t *total);
int cudaGetDevice(int *device);
int cudaGetDeviceCount(int *n);
int cudaMallocAsync(void **p, size_t size, cudaStream_t s);
int cudaFreeAsync(void *p, cudaStream_t s);
int cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
int cudaEventRecord(cudaEvent_t e, cudaStream_t s);
int cudaEventQuery(cudaEvent_t e);
int cudaEventDestroy(cudaEvent_t e);
int cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
int cudaDeviceSynchronize(void);
#ifdef __cplusplus
}
#endif
#endif
