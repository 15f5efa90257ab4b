// A program that uses the CUDA runtime as PyTorch does, without its headers.
#include <stdio.h>
#include <string.h>

extern "C" {
int cudaMalloc(void **, unsigned long);
int cudaFree(void *);
int cudaMemGetInfo(unsigned long *, unsigned long *);
int cudaMemcpy(void *, const void *, unsigned long, int);
int cudaGetDeviceCount(int *);
int cudaGetLastError(void);
int cudaStreamCreate(void **);
int cudaStreamBeginCapture(void *, int);
int cudaStreamEndCapture(void *, void **);
int cudaThreadExchangeStreamCaptureMode(int *);
int cudaGraphGetNodes(void *, void **, unsigned long *);
}

int main() {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  unsigned long before, after, all;
  cudaMemGetInfo(&before, &all);
  void *p = nullptr, *q = nullptr;
  int granted = cudaMalloc(&p, 3 << 20), refused = cudaMalloc(&q, 1ul << 40), last = cudaGetLastError();
  cudaMemGetInfo(&after, &all);
  printf("devices %d, granted %d, refused %d, last error %d then %d\n", devices, granted, refused, last, cudaGetLastError());
  printf("total %lu, taken %lu\n", all, before - after);
  char text[32] = "kept", back[32] = {};
  cudaMemcpy(p, text, sizeof text, 1);
  cudaMemcpy(back, p, sizeof back, 2);
  printf("copied back: %s\n", back);

  void *stream = nullptr, *graph = nullptr;
  cudaStreamCreate(&stream);
  int begun = cudaStreamBeginCapture(stream, 0), forbidden = cudaMalloc(&q, 512), ended = cudaStreamEndCapture(stream, &graph);
  printf("capture %d, allocation in it %d, end %d, graph %s\n", begun, forbidden, ended, graph != nullptr ? "made" : "none");
  int relaxed = 2;
  cudaStreamBeginCapture(stream, 0);
  cudaThreadExchangeStreamCaptureMode(&relaxed);
  int permitted = cudaMalloc(&q, 512);
  cudaThreadExchangeStreamCaptureMode(&relaxed);
  ended = cudaStreamEndCapture(stream, &graph);
  unsigned long nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  printf("relaxed: allocation %d, end %d, nodes %lu\n", permitted, ended, nodes);
  int freed = cudaFree(p), again = cudaFree(p);
  printf("free %d, again %d\n", freed, again);
}
