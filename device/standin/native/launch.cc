// Kernels and graphs of the CUDA runtime. A kernel is known by its name and does nothing. A
// captured graph is a number; launching it does nothing either. The rules of capture hold, since
// allocators depend on them: which streams capture, and which calls end a capture.
#include <pthread.h>

#include <initializer_list>

#include "names.h"
#include "runtime.h"

#ifndef CUDART_MAJOR
#define CUDART_MAJOR 12
#endif

namespace {

// The fields of a fat binary that are read: its images with their kinds and architectures.
struct wrapper {
  uint32_t magic, version;
  const char *data;
};
struct images {
  uint32_t magic;
  uint16_t version, header;
  uint64_t size;
};
struct image {
  uint16_t kind, version;  // 1 is PTX, 2 is machine code
  uint32_t header;
  uint64_t size;
  uint32_t unused[3];
  uint32_t architecture;
};

// A kernel of the program, by the host function that stands for it.
struct kernel {
  const void *host;
  const char *name;
  const struct wrapper *binary;  // the fat binary that has its images
  struct meaning meaning;
};

// Open addressing, at most half full. Modules register 20,000 kernels and more while the program
// is loaded, from one thread at a time.
struct kernel *kernels;
size_t kernel_count, kernel_room;
pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;

size_t slot_of(const void *host) {
  size_t i = (number(host) * 0x9e3779b97f4a7c15u) >> 20;
  for (;; i++) {
    struct kernel *k = &kernels[i & (kernel_room - 1)];
    if (k->host == nullptr || k->host == host) return i & (kernel_room - 1);
  }
}

void grow() {
  struct kernel *old = kernels;
  size_t n = kernel_room;
  kernel_room = n == 0 ? 1 << 15 : 2 * n;
  kernels = static_cast<struct kernel *>(checked(calloc(kernel_room, sizeof *kernels)));
  for (size_t i = 0; i < n; i++) {
    if (old[i].host != nullptr) kernels[slot_of(old[i].host)] = old[i];
  }
  free(old);
}

// The best image for a device: machine code of the same major version, else the highest PTX.
int best_image(const struct wrapper *w, const struct card *c) {
  int want = c->major * 10 + c->minor, best = 0, ptx = 0;
  if (w == nullptr || w->magic != 0x466243b1) return want;
  const struct images *all = reinterpret_cast<const struct images *>(w->data);
  if (all == nullptr || all->magic != 0xba55ed50) return want;
  const char *at = w->data + all->header, *end = at + all->size;
  while (at + sizeof(struct image) <= end) {
    const struct image *i = reinterpret_cast<const struct image *>(at);
    int has = int(i->architecture);
    if (i->kind == 2 && has / 10 == c->major && has <= want && has > best) best = has;
    if (i->kind == 1 && has <= want && has > ptx) ptx = has;
    if (i->header == 0) break;
    at += i->header + i->size;
  }
  return best != 0 ? best : ptx != 0 ? ptx : want;
}

struct dim3 {
  unsigned x, y, z;
};

struct kernel find_kernel(const void *host) {
  struct kernel k = {};
  pthread_mutex_lock(&kernels_lock);
  if (kernel_room != 0) {
    struct kernel *found = &kernels[slot_of(host)];
    if (found->host != nullptr && found->meaning.effect == EFFECT_UNREAD) found->meaning = read_name(found->name);
    k = *found;
  }
  pthread_mutex_unlock(&kernels_lock);
  return k;
}

// The upper half of a float, rounded to even: a bfloat16.
uint16_t bfloat16_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A half, rounded to even. Scaling by a power of two brings the exponent to a half's, and makes
// floats below its smallest normal number subnormal, which the processor rounds.
uint16_t half_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  uint16_t sign = uint16_t(bits >> 16 & 0x8000);
  float scaled = (f < 0 ? -f : f) * 0x1p-112f;
  memcpy(&bits, &scaled, sizeof bits);
  bits = (bits + 0xfff + (bits >> 13 & 1)) >> 13;
  return uint16_t(sign | (bits > 0x7c00 ? 0x7c00 : bits));
}

const int64_t most_elements = 1 << 20;  // of more nothing is kept

// a + b * c. Integers wrap around, as on a GPU.
template <typename T>
T sum_of(T a, T b, T c) {
  if constexpr (T(1) / T(2) != 0) {
    return a + b * c;
  } else {
    return T(uint64_t(a) + uint64_t(b) * uint64_t(c));
  }
}

template <typename T>
T *values_of(int64_t n) { return static_cast<T *>(checked(malloc(size_t(n) * sizeof(T)))); }

template <typename T, typename S>
void count_up(void *to, int64_t n, const void *functor) {
  S start_step[2];
  memcpy(start_step, functor, sizeof start_step);
  T *values = values_of<T>(n);
  for (int64_t i = 0; i < n; i++) values[i] = T(sum_of(start_step[0], start_step[1], S(i)));
  vramyard_copy(to, values, size_t(n) * sizeof(T));
  free(values);
}

struct bfloat16 {
  uint16_t bits;
  explicit bfloat16(float f) : bits(bfloat16_of(f)) {}
};
struct half {
  uint16_t bits;
  explicit half(float f) : bits(half_of(f)) {}
};

// Fills memory with start, start + step and so on. The arguments are the number of elements, the
// functor with start and step, and the address.
void number_elements(const struct meaning *m, void **arguments) {
  int64_t n = 0;
  memcpy(&n, arguments[0], m->wide ? sizeof(int64_t) : sizeof(int));
  void *to;
  memcpy(&to, arguments[2], sizeof to);
  if (n <= 0) return;
  switch (n <= most_elements ? m->type : 0) {
    case 'h': return count_up<uint8_t, int64_t>(to, n, arguments[1]);
    case 'a': return count_up<int8_t, int64_t>(to, n, arguments[1]);
    case 'i': return count_up<int32_t, int64_t>(to, n, arguments[1]);
    case 'l': return count_up<int64_t, int64_t>(to, n, arguments[1]);
    case 's': return count_up<int16_t, int64_t>(to, n, arguments[1]);
    case 'd': return count_up<double, double>(to, n, arguments[1]);
    case 'f': return count_up<float, float>(to, n, arguments[1]);
    case 'e': return count_up<struct half, float>(to, n, arguments[1]);
    case 'g': return count_up<struct bfloat16, float>(to, n, arguments[1]);
  }
  vramyard_changed(to, size_t(n) * size_t(m->width));
}

// Adds a number to elements whose values are known.
template <typename T>
void add_number(void *to, const void *from, int64_t n, const void *number, bool scaled) {
  T terms[2] = {0, 1};
  memcpy(terms, number, (scaled ? 2 : 1) * sizeof(T));
  size_t size = size_t(n) * sizeof(T);
  T *values = values_of<T>(n);
  if (vramyard_known(values, from, size)) {
    for (int64_t i = 0; i < n; i++) values[i] = sum_of(values[i], terms[0], terms[1]);
    vramyard_copy(to, values, size);
  } else {
    vramyard_changed(to, size);
  }
  free(values);
}

// The functor of a number has it and, if scaled, a factor.
void add_number(const struct meaning *m, void *to, const void *from, int64_t n, const void *number, bool scaled) {
  if (n <= 0) return;
  switch (n <= most_elements ? m->type : 0) {
    case 'h': return add_number<uint8_t>(to, from, n, number, scaled);
    case 'a': return add_number<int8_t>(to, from, n, number, scaled);
    case 's': return add_number<int16_t>(to, from, n, number, scaled);
    case 'i': return add_number<int32_t>(to, from, n, number, scaled);
    case 'l': return add_number<int64_t>(to, from, n, number, scaled);
    case 'd': return add_number<double>(to, from, n, number, scaled);
    case 'f': return add_number<float>(to, from, n, number, scaled);
  }
  vramyard_changed(to, size_t(n) * size_t(m->width));
}

// The first argument of a kernel over a list of tensors. Each block computes a chunk of a tensor.
struct tensor_list {
  static const int most = 110, most_blocks = 320;
  void *addresses[most];
  int64_t numbers[most];               // of elements
  unsigned char tensors[most_blocks];  // by block
  int chunks[most_blocks];
};

// Adds a number to the tensors that are a chunk each, as counters are. The others become unknown.
void add_to_all(const struct meaning *m, unsigned blocks, const struct tensor_list *list, const void *number) {
  for (unsigned i = 0; i < blocks && i < unsigned(tensor_list::most_blocks); i++) {
    int device;
    unsigned t = list->tensors[i];
    if (t >= unsigned(tensor_list::most) || vramyard_place(list->addresses[t], &device) != PLACE_DEVICE) return;
    bool whole = list->chunks[i] == 0 && (i + 1 == blocks || list->tensors[i + 1] != t);
    void *at = list->addresses[t];
    if (whole) {
      add_number(m, at, at, list->numbers[t], number, false);
    } else {
      vramyard_changed(at, size_t(list->numbers[t]) * size_t(m->width));
    }
  }
}

// The bytes of an element that a kernel stores with a cast. The seventh argument has the type and
// the bytes.
size_t stored_width(void **arguments) {
  uint32_t width;
  memcpy(&width, static_cast<const char *>(arguments[6]) + sizeof width, sizeof width);
  return width;
}

// Does what is known of a kernel. The arguments of most are the number of elements, the functor, and
// the addresses of the result and of the operands.
void run(const void *host, struct dim3 grid, void **arguments, stream_t s) {
  struct meaning m = find_kernel(host).meaning;
  if (m.effect == EFFECT_NONE || m.effect == EFFECT_UNREAD) return;
  // Every launch of a graph adds again, which nothing follows: the sum is unknown.
  if ((m.effect == EFFECT_ADD || m.effect == EFFECT_ADD_ALL) && captured(s)) m.type = 0;
  if (m.effect == EFFECT_ADD_ALL) return add_to_all(&m, grid.x, static_cast<const struct tensor_list *>(arguments[0]), arguments[3]);
  if (m.effect == EFFECT_COUNT) return number_elements(&m, arguments);
  int count;
  uint64_t word = 0;
  void *to, *operand;
  memcpy(&count, arguments[0], sizeof count);
  memcpy(&to, arguments[2], sizeof to);
  if (count <= 0) return;
  size_t width = m.width != 0 ? size_t(m.width) : stored_width(arguments);
  switch (m.effect) {
    case EFFECT_FILL:
      memcpy(&word, arguments[1], width);
      return vramyard_fill(to, word, int(width), size_t(count) * width);
    case EFFECT_ADD:
      memcpy(&operand, static_cast<void **>(arguments[2]) + 1, sizeof operand);
      return add_number(&m, to, operand, count, arguments[1], true);
    default: return vramyard_changed(to, size_t(count) * width);
  }
}

struct configuration {
  struct dim3 grid, block;
  size_t shared;
  stream_t stream;
};

// Nested launches do not occur while arguments are evaluated in practice; nvcc permits them.
const int deepest = 16;
thread_local struct configuration stack[deepest];
thread_local int depth;

}  // namespace

// Registration, which the code that nvcc generates does while it is loaded.

API void **__cudaRegisterFatBinary(void *binary) {
  return static_cast<void **>(binary);  // is the handle
}
API void __cudaRegisterFatBinaryEnd(void **) {}
API void __cudaUnregisterFatBinary(void **) {}
API char __cudaInitModule(void **) { return 1; }
API void __cudaRegisterFunction(void **handle, const char *host, char *, const char *name, int, void *, void *, void *,
                                void *, int *) {
  pthread_mutex_lock(&kernels_lock);
  if (2 * (kernel_count + 1) > kernel_room) grow();
  struct kernel *k = &kernels[slot_of(host)];
  kernel_count += k->host == nullptr;
  *k = {host, name, reinterpret_cast<const struct wrapper *>(handle), {EFFECT_UNREAD, 0, 0, false}};
  pthread_mutex_unlock(&kernels_lock);
}
API void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int) {}
API void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int) {}

// Launches.

API unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared, stream_t stream) {
  if (depth == deepest) return 1;
  stack[depth++] = {grid, block, shared, stream};
  return 0;
}
API error_t_ __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared, stream_t *stream) {
  if (depth == 0) return noted(UNKNOWN);
  const struct configuration *c = &stack[--depth];
  *grid = c->grid, *block = c->block, *shared = c->shared, *stream = c->stream;
  return SUCCESS;
}
API error_t_ cudaLaunchKernel(const void *host, struct dim3 grid, struct dim3, void **arguments, size_t, stream_t s) {
  run(host, grid, arguments, s);
  return SUCCESS;
}
API error_t_ __cudaLaunchKernel(void *host, struct dim3 grid, struct dim3, void **arguments, size_t, stream_t s) {
  run(host, grid, arguments, s);
  return SUCCESS;
}
API error_t_ cudaLaunchKernelExC(const void *, const void *, void **) { return SUCCESS; }
API error_t_ cudaLaunchCooperativeKernel(const void *, struct dim3, struct dim3, void **, size_t, stream_t) {
  return SUCCESS;
}
API error_t_ __cudaGetKernel(void **out, const void *host) {
  *out = const_cast<void *>(host);
  return SUCCESS;
}
API error_t_ cudaGetFuncBySymbol(void **out, const void *host) { return __cudaGetKernel(out, host); }

struct function_attributes {
  size_t shared, constant, local;
  int threads, registers, ptx, binary, cache, most_shared, carveout;
};
API error_t_ cudaFuncGetAttributes(struct function_attributes *out, const void *host) {
  int image = best_image(find_kernel(host).binary, vramyard_card(here()));
  *out = {0, 0, 0, 1024, 32, image, image, 0, 49152, -1};
  return SUCCESS;
}
API error_t_ cudaFuncSetAttribute(const void *, int, int) { return SUCCESS; }
API error_t_ cudaFuncSetCacheConfig(const void *, int) { return SUCCESS; }
API error_t_ cudaFuncGetName(const char **out, const void *host) {
  struct kernel k = find_kernel(host);
  if (k.name == nullptr) return noted(INVALID_DEVICE_FUNCTION);
  *out = k.name;
  return SUCCESS;
}

// As many blocks as threads, shared memory and registers permit, with 32 registers a thread.
API error_t_ cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, const void *, int threads, size_t shared,
                                                                    unsigned) {
  const struct card *c = vramyard_card(here());
  if (threads <= 0 || threads > 1024) {
    *out = 0;
    return noted(INVALID_VALUE);
  }
  int64_t n = c->threads / threads;
  int64_t by_shared = shared > size_t(c->shared_processor) ? 0 : c->shared_processor / int64_t(shared + 1024);
  int64_t by_registers = c->registers / (32 * int64_t(threads)), blocks = c->blocks;
  for (int64_t other : {by_shared, by_registers, blocks}) n = other < n ? other : n;
  *out = n < 1 ? 1 : int(n);
  return SUCCESS;
}
API error_t_ cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *out, const void *f, int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, f, threads, shared, 0);
}
API error_t_ cudaOccupancyMaxActiveClusters(int *out, const void *, const void *) {
  *out = 1;
  return SUCCESS;
}

// Capture.

namespace {

enum mode : int { MODE_GLOBAL = 0, MODE_THREAD = 1, MODE_RELAXED = 2 };
enum capture_status : int { CAPTURE_NONE = 0, CAPTURE_ACTIVE = 1, CAPTURE_BROKEN = 2 };

struct capture {
  uint64_t id;
  stream_t origin;
  int mode;
  pthread_t by;
  bool broken;
  void *graph;
  struct capture *next;
};

// A stream or an event that belongs to a capture.
struct member {
  void *what;
  uint64_t id;
  struct member *next;
};

pthread_mutex_t captures_lock = PTHREAD_MUTEX_INITIALIZER;
struct capture *captures;
struct member *members;
uint64_t last_capture;
thread_local int exchange_mode = MODE_GLOBAL;

bool none() { return __atomic_load_n(&captures, __ATOMIC_ACQUIRE) == nullptr; }

struct capture *capture_of(const void *what) {
  for (struct member *m = members; m != nullptr; m = m->next) {
    if (m->what != what) continue;
    for (struct capture *c = captures; c != nullptr; c = c->next) {
      if (c->id == m->id) return c;
    }
  }
  return nullptr;
}

void join(void *what, struct capture *c) {
  if (capture_of(what) == c) return;
  struct member *m = static_cast<struct member *>(checked(malloc(sizeof *m)));
  *m = {what, c->id, members};
  members = m;
}

void leave(uint64_t id) {
  for (struct member **at = &members; *at != nullptr;) {
    struct member *m = *at;
    if (m->id != id) {
      at = &m->next;
      continue;
    }
    *at = m->next;
    free(m);
  }
}

struct lock_captures {
  lock_captures() { pthread_mutex_lock(&captures_lock); }
  ~lock_captures() { pthread_mutex_unlock(&captures_lock); }
};

}  // namespace

API bool vramyard_interrupts_capture() {
  if (none() || exchange_mode == MODE_RELAXED) return false;
  lock_captures held;
  bool found = false;
  for (struct capture *c = captures; c != nullptr; c = c->next) {
    if (c->mode == MODE_RELAXED || ((c->mode == MODE_THREAD || exchange_mode == MODE_THREAD) && !pthread_equal(c->by, pthread_self()))) {
      continue;
    }
    c->broken = found = true;
  }
  return found;
}

bool captured(stream_t s) {
  if (none()) return false;
  lock_captures held;
  return capture_of(s) != nullptr;
}

void recorded_in_capture(event_t e, stream_t s) {
  if (none()) return;
  lock_captures held;
  struct capture *c = capture_of(s);
  if (c != nullptr) join(e, c);
}

void joins_capture(stream_t s, event_t e) {
  if (none()) return;
  lock_captures held;
  struct capture *c = capture_of(e);
  if (c != nullptr) join(s, c);
}

API error_t_ cudaThreadExchangeStreamCaptureMode(int *mode) {
  int was = exchange_mode;
  exchange_mode = *mode, *mode = was;
  return SUCCESS;
}
API error_t_ cudaStreamBeginCapture(stream_t s, int mode) {
  if (s == nullptr) return noted(CAPTURE_UNSUPPORTED);  // the default stream cannot capture
  lock_captures held;
  if (capture_of(s) != nullptr) return noted(ILLEGAL_CAPTURE_STATE);
  struct capture *c = static_cast<struct capture *>(checked(malloc(sizeof *c)));
  *c = {++last_capture, s, mode, pthread_self(), false, vramyard_token(), captures};
  join(s, c);
  __atomic_store_n(&captures, c, __ATOMIC_RELEASE);
  return SUCCESS;
}
API error_t_ cudaStreamBeginCaptureToGraph(stream_t s, void *, const void *, const void *, size_t, int mode) {
  return cudaStreamBeginCapture(s, mode);
}
API error_t_ cudaStreamEndCapture(stream_t s, void **graph) {
  lock_captures held;
  for (struct capture **at = &captures; *at != nullptr; at = &(*at)->next) {
    struct capture *c = *at;
    if (c->origin != s) continue;
    bool broken = c->broken;
    *graph = broken ? nullptr : c->graph;
    leave(c->id);
    *at = c->next;
    free(c);
    return broken ? noted(CAPTURE_INVALIDATED) : int(SUCCESS);
  }
  return noted(ILLEGAL_CAPTURE_STATE);
}

namespace {

// Gives what is known of the capture of a stream. Dependencies are not kept.
int capture_info(stream_t s, int *status, unsigned long long *id, void **graph, size_t *count) {
  *status = CAPTURE_NONE;
  if (count != nullptr) *count = 0;
  if (none()) return SUCCESS;
  lock_captures held;
  struct capture *c = capture_of(s);
  if (c == nullptr) return SUCCESS;
  *status = c->broken ? CAPTURE_BROKEN : CAPTURE_ACTIVE;
  if (id != nullptr) *id = c->id;
  if (graph != nullptr) *graph = c->graph;
  return SUCCESS;
}

}  // namespace

API error_t_ cudaStreamIsCapturing(stream_t s, int *status) { return capture_info(s, status, nullptr, nullptr, nullptr); }
API error_t_ cudaStreamGetCaptureInfo_v2(stream_t s, int *status, unsigned long long *id, void **graph, void *, size_t *count) {
  return capture_info(s, status, id, graph, count);
}
API error_t_ cudaStreamGetCaptureInfo_v3(stream_t s, int *status, unsigned long long *id, void **graph, void *, void *,
                                         size_t *count) {
  return capture_info(s, status, id, graph, count);
}
#if CUDART_MAJOR >= 13
API error_t_ cudaStreamGetCaptureInfo(stream_t s, int *status, unsigned long long *id, void **graph, void *, void *,
                                      size_t *count) {
  return capture_info(s, status, id, graph, count);
}
#else
API error_t_ cudaStreamGetCaptureInfo(stream_t s, int *status, unsigned long long *id) {
  return capture_info(s, status, id, nullptr, nullptr);
}
#endif
API error_t_ cudaStreamUpdateCaptureDependencies(stream_t, void *, size_t, unsigned) { return SUCCESS; }

// Graphs.

API error_t_ cudaGraphCreate(void **graph, unsigned) {
  *graph = vramyard_token();
  return SUCCESS;
}
API error_t_ cudaGraphDestroy(void *) { return SUCCESS; }
API error_t_ cudaGraphExecDestroy(void *) { return SUCCESS; }
API error_t_ cudaGraphInstantiate(void **exec, void *, unsigned long long) {
  *exec = vramyard_token();
  return SUCCESS;
}
API error_t_ cudaGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
API error_t_ cudaGraphLaunch(void *, stream_t) { return SUCCESS; }
API error_t_ cudaGraphUpload(void *, stream_t) { return SUCCESS; }
API error_t_ cudaGraphDebugDotPrint(void *, const char *, unsigned) { return SUCCESS; }
// A graph says that it has one node: PyTorch warns of an empty one.
API error_t_ cudaGraphGetNodes(void *graph, void **nodes, size_t *count) {
  if (nodes != nullptr && *count > 0) nodes[0] = graph;
  *count = 1;
  return SUCCESS;
}
API error_t_ cudaGraphNodeGetType(void *, int *type) {
  *type = 0;  // a kernel
  return SUCCESS;
}
API error_t_ cudaGraphNodeGetDependencies(void *, void *, size_t *count) {
  *count = 0;
  return SUCCESS;
}
API error_t_ cudaGraphAddEmptyNode(void **node, void *, const void *, size_t) {
  *node = vramyard_token();
  return SUCCESS;
}
API error_t_ cudaGraphRetainUserObject(void *, void *, unsigned, unsigned) { return SUCCESS; }
API error_t_ cudaUserObjectCreate(void **object, void *, void (*)(void *), unsigned, unsigned) {
  *object = vramyard_token();
  return SUCCESS;
}
