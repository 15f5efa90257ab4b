// A program that uses the CUDA runtime as PyTorch does, without its headers.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Copies to the device until it is told to stop.
bool stop;
void *copies(void *to) {
  char *from = static_cast<char *>(calloc(1 << 20, 1));
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) cudaMemcpy(to, from, 1 << 20, 1);
  free(from);
  return nullptr;
}

// Forks while another thread copies, and returns how many of the forked processes read what p holds
// and get no memory.
int forks(void *p, char *busy, int times) {
  int good = 0;
  pthread_t other;
  pthread_create(&other, nullptr, copies, busy);
  for (int i = 0; i < times && good == i; i++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // ends a process that waits for ever
      char back[5] = {};
      void *q = nullptr;
      cudaMemcpy(busy, p, 5, 3);
      cudaMemcpy(back, busy, 5, 2);
      _exit(strcmp(back, "kept") == 0 && cudaMalloc(&q, 512) == 3 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    good += status == 0;
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
  pthread_join(other, nullptr);
  return good;
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

  printf("forked: %d\n", forks(p, static_cast<char *>(p) + (1 << 20), 20));

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
  cudaMalloc(&q, 3 << 20);
  cudaMemcpy(back, q, sizeof back, 2);
  printf("new memory at the %s address: %s\n", p == q ? "same" : "other", back);
}
