/* What happens while it is loaded is chosen by a macro. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda.h"

static char *arena;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int woken;

static void *keeper(void *none) {
  for (;;) {
    pthread_mutex_lock(&lock);
    woken = 1;
    pthread_mutex_unlock(&lock);
    usleep(1000);
  }
  return none;
}

__attribute__((constructor)) static void loaded(void) {
  (void)keeper;
#if defined(CRASHES)
  *(volatile int *)0x10 = 1;
#elif defined(LEAVES)
  exit(5);
#elif defined(HANGS)
  for (;;) pause();
#elif defined(STARTS)
  pthread_t t;
  pthread_create(&t, NULL, keeper, NULL);
#elif defined(ASKS)
  cudaMalloc((void **)&arena, 1 << 20);
#endif
}

/* One block at a time, out of an arena that is taken when it is loaded, if that is so. */
void *take(size_t size, int device, cudaStream_t stream) {
  void *p = NULL;
  (void)device, (void)stream;
#if defined(STARTS)
  for (int there = 0; !there; usleep(1000)) { /* a thread that did not come along would never be here */
    pthread_mutex_lock(&lock);
    there = woken;
    pthread_mutex_unlock(&lock);
  }
#endif
  if (arena != NULL) return size <= 1 << 20 ? arena : NULL;
  return cudaMalloc(&p, size) == 0 ? p : NULL;
}

void give(void *p, size_t size, int device, cudaStream_t stream) {
  (void)size, (void)device, (void)stream;
  if (p != arena) cudaFree(p);
}
