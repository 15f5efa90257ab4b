/*
 * A first fit for PyTorch, as a plug-in. Blocks come from regions of 32 MiB or more. The lowest free
 * chunk that is large enough serves a request, and free neighbours merge. A block that is in use on
 * other streams is free once their work queued before the free has completed.
 *
 *   cc -O2 -shared -fPIC -o firstfit.so firstfit.c -pthread
 *   vramyard check --strategies 'plugin:./firstfit.so?alloc=ff_malloc&free=ff_free&reset=ff_reset'
 *
 * The same file serves PyTorch on a real GPU: there, cuda_runtime.h is used and libcudart linked.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#else /* the declarations used here; the library is present at run time */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
extern int cudaMalloc(void **p, size_t size);
extern int cudaFree(void *p);
extern int cudaGetLastError(void);
extern int cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
extern int cudaEventRecord(cudaEvent_t e, cudaStream_t s);
extern int cudaEventQuery(cudaEvent_t e);
extern int cudaEventDestroy(cudaEvent_t e);
extern int cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
extern int cudaDeviceSynchronize(void);
enum { cudaSuccess = 0, cudaEventDisableTiming = 2 };
#endif

#define UNIT ((size_t)512) /* alignment of PyTorch's own allocator */
#define REGION ((size_t)32 << 20)
#define MOST_USES 8 /* most streams other than its own that may use a block */

/* A chunk of a region. Chunks of all regions are one list, by region and address; nothing is ever
 * written to the memory itself. */
struct chunk {
  struct chunk *next, *before;
  char *at;
  size_t size;
  int first;  /* first chunk of a region */
  int live;
  int owned;  /* of a free chunk: only its stream may reuse it without waiting */
  int uses;   /* number of recorded streams */
  cudaStream_t stream, use[MOST_USES];
  cudaEvent_t passed[MOST_USES]; /* of a freed chunk: an event in each recorded stream; null if it could not be created yet */
};

static struct chunk *chunks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Records an event after the queued work of a stream. If that fails, settled retries it later. The
 * chunk then waits longer than necessary, which is safe. */
static cudaEvent_t mark(cudaStream_t s) {
  cudaEvent_t e;
  if (cudaEventCreateWithFlags(&e, cudaEventDisableTiming) != cudaSuccess) return NULL;
  if (cudaEventRecord(e, s) == cudaSuccess) return e;
  cudaEventDestroy(e);
  return NULL;
}

/* Reports whether no stream uses a freed chunk any more. Drops the events that have completed. */
static int settled(struct chunk *c) {
  while (c->uses > 0) {
    int last = c->uses - 1;
    if (c->passed[last] == NULL) c->passed[last] = mark(c->use[last]);
    if (c->passed[last] == NULL || cudaEventQuery(c->passed[last]) != cudaSuccess) break;
    cudaEventDestroy(c->passed[last]);
    c->uses--;
  }
  (void)cudaGetLastError(); /* clears cudaErrorNotReady, which PyTorch would report as its own error */
  return c->uses == 0;
}

static int is_free(struct chunk *c) { return c != NULL && !c->live && settled(c); }

static void unlink_chunk(struct chunk *c) {
  if (c->before != NULL) c->before->next = c->next; else chunks = c->next;
  if (c->next != NULL) c->next->before = c->before;
  free(c);
}

/* Merges the next chunk of the same region into c if both are free and not owned by different
 * streams. A merged chunk is owned if one of its parts was. */
static void merge(struct chunk *c) {
  struct chunk *n = c->next;
  if (n == NULL || n->first || !is_free(n) || (c->owned && n->owned && c->stream != n->stream)) return;
  if (n->owned) c->owned = 1, c->stream = n->stream;
  c->size += n->size;
  unlink_chunk(n);
}

static struct chunk *grow(size_t size) {
  size_t bytes = size > REGION ? (size + (2 << 20) - 1) & ~(((size_t)2 << 20) - 1) : REGION;
  void *p = NULL;
  if (cudaMalloc(&p, bytes) != cudaSuccess && (bytes == size || cudaMalloc(&p, bytes = size) != cudaSuccess)) {
    (void)cudaGetLastError(); /* clears the error, which PyTorch would report as its own */
    return NULL;
  }
  struct chunk *c = calloc(1, sizeof *c), *after = NULL;
  if (c == NULL) {
    cudaFree(p);
    return NULL;
  }
  c->at = p, c->size = bytes, c->first = 1;
  for (struct chunk *o = chunks; o != NULL && o->at < c->at; o = o->next) after = o;
  c->before = after;
  c->next = after != NULL ? after->next : chunks;
  if (c->next != NULL) c->next->before = c;
  if (after != NULL) after->next = c; else chunks = c;
  return c;
}

/* Returns every region that consists of one free chunk to the device. */
static void trim(void) {
  for (struct chunk *c = chunks, *next; c != NULL; c = next) {
    next = c->next;
    if (!c->first || (next != NULL && !next->first) || !is_free(c)) continue;
    if (cudaFree(c->at) == cudaSuccess) unlink_chunk(c);
  }
}

/* Waits for the device, and makes every freed chunk usable by all streams. */
static void settle_all(void) {
  if (cudaDeviceSynchronize() != cudaSuccess) return;
  for (struct chunk *c = chunks; c != NULL; c = c->next) {
    if (c->live) continue;
    settled(c);
    c->owned = 0;
  }
  for (struct chunk *c = chunks; c != NULL; c = c->next) {
    size_t was;
    do was = c->size, is_free(c) ? merge(c) : (void)0; while (c->size != was);
  }
}

static struct chunk *find(size_t size, cudaStream_t stream) {
  for (struct chunk *c = chunks; c != NULL; c = c->next) {
    if (!c->live && c->size >= size && (!c->owned || c->stream == stream) && settled(c)) return c;
  }
  return NULL;
}

void *ff_malloc(size_t size, int device, cudaStream_t stream) {
  (void)device; /* one device only */
  if (size == 0 || size > SIZE_MAX - REGION) return NULL;
  size = (size + UNIT - 1) & ~(UNIT - 1);
  pthread_mutex_lock(&lock);
  struct chunk *c = find(size, stream);
  if (c == NULL) c = grow(size);
  if (c == NULL) {
    settle_all();
    if ((c = find(size, stream)) == NULL) {
      trim();
      c = grow(size);
    }
  }
  void *p = NULL;
  if (c != NULL) {
    struct chunk *rest = c->size - size >= UNIT ? calloc(1, sizeof *rest) : NULL;
    if (rest != NULL) {
      rest->at = c->at + size, rest->size = c->size - size, rest->owned = c->owned, rest->stream = c->stream;
      rest->before = c, rest->next = c->next;
      if (c->next != NULL) c->next->before = rest;
      c->next = rest, c->size = size;
    }
    c->live = 1, c->stream = stream, p = c->at;
  }
  pthread_mutex_unlock(&lock);
  return p;
}

static struct chunk *live_at(void *p) {
  struct chunk *c = chunks;
  while (c != NULL && !(c->live && c->at == p)) c = c->next;
  return c;
}

void ff_free(void *p, size_t size, int device, cudaStream_t stream) {
  (void)size, (void)device, (void)stream; /* the list of chunks has them */
  pthread_mutex_lock(&lock);
  struct chunk *c = live_at(p);
  if (c != NULL) {
    c->live = 0, c->owned = 1;
    for (int i = 0; i < c->uses; i++) c->passed[i] = mark(c->use[i]);
    if (settled(c)) {
      merge(c);
      if (!c->first && is_free(c->before)) merge(c->before);
    }
  }
  pthread_mutex_unlock(&lock);
}

void ff_record_stream(void *p, cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  struct chunk *c = live_at(p);
  int known = c == NULL || c->stream == stream;
  for (int i = 0; !known && i < c->uses; i++) known = c->use[i] == stream;
  if (!known && c->uses < MOST_USES) {
    c->use[c->uses++] = stream;
  } else if (!known) {
    abort(); /* forgetting a stream would corrupt data; more than MOST_USES streams are a bug of the caller */
  }
  pthread_mutex_unlock(&lock);
}

void ff_reset(void) {
  pthread_mutex_lock(&lock);
  settle_all();
  trim();
  pthread_mutex_unlock(&lock);
}
