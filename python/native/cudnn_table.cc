// Loaded before cuDNN by vramyard.cudnn_table: it forwards the calls of the graph API to cuDNN, remembers
// what descriptors were given, and appends the convolution and the work area of each executed plan
// to the file that VRAMYARD_ROWS names.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <initializer_list>

#include "dnn.h"

namespace {

// A descriptor of cuDNN and ours, which remembers its attributes. Destroyed ones keep their place
// until cuDNN uses the address again.
struct pair {
  void *real;
  struct descriptor *ours;
  struct pair *next;
};

const size_t buckets = 4096;
struct pair *pairs[buckets];
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct locked {
  locked() { pthread_mutex_lock(&lock); }
  ~locked() { pthread_mutex_unlock(&lock); }
};

struct pair **find_pair(void *real) {
  struct pair **at = &pairs[number(real) / 16 % buckets];
  while (*at != nullptr && (*at)->real != real) at = &(*at)->next;
  return at;
}

struct descriptor *ours(void *real) {
  struct pair *p = *find_pair(real);
  return p == nullptr ? nullptr : p->ours;
}

template <typename F>
F real(const char *name) {
  for (const char *library : {"libcudnn.so.9", "libcudnn.so.8"}) {
    void *opened = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *f = opened != nullptr ? dlsym(opened, name) : nullptr;
    if (f != nullptr) return reinterpret_cast<F>(f);
  }
  fprintf(stderr, "cudnn_table: cuDNN has no %s\n", name);
  exit(1);
}

void remember(void *d, int name, int type, int64_t count, const void *elements) {
  locked hold;
  if (ours(d) == nullptr || count <= 0) return;
  if (type != ELEMENT_DESCRIPTOR) return set_attribute(ours(d), name, type, count, elements);
  void **own = static_cast<void **>(calloc(size_t(count), sizeof *own));
  for (int64_t i = 0; i < count; i++) own[i] = ours(static_cast<void *const *>(elements)[i]);
  set_attribute(ours(d), name, type, count, own);
  free(own);
}

typedef int (*get_attribute)(void *, int, int, int64_t, int64_t *, void *);

void write_row(void *plan) {
  char row[1100];
  int64_t count = 0, bytes = 0;
  if (real<get_attribute>("cudnnBackendGetAttribute")(plan, PLAN_WORKSPACE, ELEMENT_INT64, 1, &count, &bytes) != 0) return;
  locked hold;
  size_t length = ours(plan) == nullptr ? 0 : describe_convolution(ours(plan), row, 1024);
  const char *path = getenv("VRAMYARD_ROWS");
  if (length == 0 || path == nullptr) return;
  length += size_t(snprintf(row + length, sizeof row - length, " %lld\n", (long long)bytes));
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0 || write(file, row, length) != ssize_t(length)) perror(path);
  if (file >= 0) close(file);
}

}  // namespace

API int cudnnBackendCreateDescriptor(int type, void **out) {
  int status = real<int (*)(int, void **)>(__func__)(type, out);
  locked hold;
  if (status != 0) return status;
  struct pair **at = find_pair(*out);
  if (*at == nullptr) {
    *at = static_cast<struct pair *>(calloc(1, sizeof **at));
    (*at)->real = *out;
  }
  release_descriptor((*at)->ours);
  (*at)->ours = new_descriptor(type);
  return status;
}
API int cudnnBackendSetAttribute(void *d, int name, int type, int64_t count, const void *elements) {
  int status = real<int (*)(void *, int, int, int64_t, const void *)>(__func__)(d, name, type, count, elements);
  if (status == 0) remember(d, name, type, count, elements);
  return status;
}
API int cudnnBackendGetAttribute(void *d, int name, int type, int64_t room, int64_t *count, void *elements) {
  int status = real<get_attribute>(__func__)(d, name, type, room, count, elements);
  if (status != 0 || name != HEURISTICS_RESULTS || elements == nullptr) return status;
  for (int64_t i = 0; i < room; i++) {
    remember(static_cast<void **>(elements)[i], HEURISTICS_GRAPH, ELEMENT_DESCRIPTOR, 1, &d);
  }
  return status;
}
API int cudnnBackendExecute(void *handle, void *plan, void *pack) {
  int status = real<int (*)(void *, void *, void *)>(__func__)(handle, plan, pack);
  if (status == 0) write_row(plan);
  return status;
}
