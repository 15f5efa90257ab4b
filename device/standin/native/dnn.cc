// cuDNN: one plan for every graph, the sizes of work areas by the policy that the user chose, and
// the layout of the weights of recurrent networks. Kernels do nothing.
#include "dnn.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef CUDNN_VERSION
#define CUDNN_VERSION 90100
#endif

namespace {

enum dnn_status : int { DNN_SUCCESS = 0, DNN_BAD_PARAM = 2000, DNN_NOT_SUPPORTED = 3000 };

const int most_dimensions = 8;
const size_t longest_row = 1024;

// The policy for work areas: a size for all, and a table of known ones.
struct policy {
  uint64_t bound;
  char *table;  // its text, with rows of a description, a space and bytes; null for none
};

char *read_all(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (file < 0) return nullptr;
  char *text = nullptr;
  if (fstat(file, &about) == 0) {
    size_t size = size_t(about.st_size), done = 0;
    text = static_cast<char *>(checked(malloc(size + 1)));
    for (ssize_t n; done < size && (n = read(file, text + done, size - done)) > 0;) done += size_t(n);
    text[done] = 0;
  }
  close(file);
  return text;
}

// Read once; a second thread that reads it at the same time leaks its copy.
const struct policy *chosen() {
  static struct policy *cached;
  struct policy *p = __atomic_load_n(&cached, __ATOMIC_ACQUIRE);
  if (p != nullptr) return p;
  p = static_cast<struct policy *>(checked(calloc(1, sizeof *p)));
  const char *words = getenv("VRAMYARD_CUDNN");
  if (words != nullptr && strncmp(words, "bound=", 6) == 0) p->bound = strtoull(words + 6, nullptr, 10);
  if (words != nullptr && strncmp(words, "table=", 6) == 0) p->table = read_all(words + 6);
  __atomic_store_n(&cached, p, __ATOMIC_RELEASE);
  return p;
}

// Finds the bytes of a description in the table.
bool look_up(const char *row, size_t length, uint64_t *bytes) {
  for (const char *at = chosen()->table; length > 0 && at != nullptr && *at != 0;) {
    if (strncmp(at, row, length) == 0 && at[length] == ' ') {
      *bytes = strtoull(at + length, nullptr, 10);
      return true;
    }
    at = strchr(at, '\n');
    if (at != nullptr) at++;
  }
  return false;
}

// A work area, and whether its size is a guess.
struct area {
  uint64_t bytes;
  bool guessed;
};

// The work area of the convolution that a row describes; an empty row is another operation.
struct area area_of(const char *row, size_t length) {
  struct area a = {chosen()->bound, true};
  a.guessed = !look_up(row, length, &a.bytes);
  return a;
}

struct area area_of(const struct descriptor *plan, bool *convolution) {
  char row[longest_row];
  size_t length = describe_convolution(plan, row, sizeof row);
  *convolution = length > 0;
  return area_of(row, length);
}

}  // namespace

// Versions and errors.

API size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
API size_t cudnnGetCudartVersion(void) { return 12080; }
API int cudnnGetProperty(int type, int *value) {
  const int base = CUDNN_VERSION >= 90000 ? 10000 : 1000;
  *value = type == 0 ? CUDNN_VERSION / base : type == 1 ? CUDNN_VERSION % base / 100 : CUDNN_VERSION % 100;
  return DNN_SUCCESS;
}
API void cudnnGetLastErrorString(char *text, size_t size) {
  if (size > 0) text[0] = 0;
}

// The graph API.

API int cudnnBackendCreateDescriptor(int type, struct descriptor **out) {
  *out = new_descriptor(type);
  return DNN_SUCCESS;
}
API int cudnnBackendDestroyDescriptor(struct descriptor *d) {
  release_descriptor(d);
  return DNN_SUCCESS;
}
API int cudnnBackendFinalize(struct descriptor *) { return DNN_SUCCESS; }
API int cudnnBackendSetAttribute(struct descriptor *d, int name, int type, int64_t count, const void *elements) {
  set_attribute(d, name, type, count, elements);
  return DNN_SUCCESS;
}

// There is one engine with one configuration, which has no knobs and no notes. The caller's
// descriptors stand for both.
API int cudnnBackendGetAttribute(struct descriptor *d, int name, int, int64_t room, int64_t *count, void *elements) {
  int64_t n = name == HEURISTICS_RESULTS || name == CONFIG_ENGINE || name == CONFIG_SHARED_MEMORY ||
              name == ENGINE_INDEX || name == PLAN_WORKSPACE;
  if (count != nullptr) *count = n;
  if (n == 0 || room < 1 || elements == nullptr) return DNN_SUCCESS;
  int64_t value = 1;
  bool convolution;
  switch (name) {
    case PLAN_WORKSPACE: value = int64_t(area_of(d, &convolution).bytes); [[fallthrough]];
    case ENGINE_INDEX: memcpy(elements, &value, sizeof value); break;
    // An int. A configuration that needs more than the card has would be left out.
    case CONFIG_SHARED_MEMORY: memset(elements, 0, sizeof(int32_t)); break;
    default: {
      struct descriptor *given;
      memcpy(&given, elements, sizeof given);
      if (given != nullptr && given != d) set_attribute(given, HEURISTICS_GRAPH, ELEMENT_DESCRIPTOR, 1, &d);
    }
  }
  return DNN_SUCCESS;
}

API int cudnnBackendExecute(void *, struct descriptor *plan, struct descriptor *pack) {
  bool convolution;
  if (!area_of(plan, &convolution).guessed) return DNN_SUCCESS;
  vramyard_guessed(convolution ? GUESSED_CONVOLUTION : GUESSED_OTHER, area_in(pack), nullptr);
  return DNN_SUCCESS;
}

// Descriptors of tensors and filters, which can be read back.

namespace {

struct tensor {
  int64_t type;
  int format, count;
  int64_t dimensions[most_dimensions], strides[most_dimensions];
};

const int format_channels_last = 1;

// Without strides a tensor is packed. The second dimension are the channels.
int set_tensor(struct tensor *t, int type, int format, int count, const int *dimensions, const int *strides) {
  if (count < 1 || count > most_dimensions) return DNN_BAD_PARAM;
  *t = {type, format, count, {}, {}};
  uint64_t packed = 1;
  bool channels_last = format == format_channels_last && count > 2;
  for (int n = 0; n < count; n++) {
    int i = count - 1 - n;
    if (channels_last && i > 0) i = n == 0 ? 1 : i + 1;
    t->dimensions[i] = dimensions[i];
    t->strides[i] = strides != nullptr ? strides[i] : int64_t(packed);
    packed *= uint64_t(dimensions[i]);
  }
  return DNN_SUCCESS;
}

void get_tensor(const struct tensor *t, int room, int *type, int *count, int *dimensions, int *strides) {
  *type = int(t->type), *count = t->count;
  for (int i = 0; i < t->count && i < room; i++) {
    dimensions[i] = int(t->dimensions[i]);
    if (strides != nullptr) strides[i] = int(t->strides[i]);
  }
}

template <typename T>
int make(T **out) {
  *out = static_cast<T *>(checked(calloc(1, sizeof **out)));
  return DNN_SUCCESS;
}

int drop(void *p) {
  free(p);
  return DNN_SUCCESS;
}

}  // namespace

API int cudnnCreateTensorDescriptor(struct tensor **out) { return make(out); }
API int cudnnCreateFilterDescriptor(struct tensor **out) { return make(out); }
API int cudnnDestroyTensorDescriptor(struct tensor *t) { return drop(t); }
API int cudnnDestroyFilterDescriptor(struct tensor *t) { return drop(t); }
API int cudnnSetTensorNdDescriptor(struct tensor *t, int type, int count, const int *dimensions, const int *strides) {
  return set_tensor(t, type, 0, count, dimensions, strides);
}
API int cudnnSetFilterNdDescriptor(struct tensor *t, int type, int format, int count, const int *dimensions) {
  return set_tensor(t, type, format, count, dimensions, nullptr);
}
API int cudnnGetTensorNdDescriptor(struct tensor *t, int room, int *type, int *count, int *dimensions, int *strides) {
  get_tensor(t, room, type, count, dimensions, strides);
  return DNN_SUCCESS;
}
API int cudnnGetFilterNdDescriptor(struct tensor *t, int room, int *type, int *format, int *count, int *dimensions) {
  *format = t->format;
  get_tensor(t, room, type, count, dimensions, nullptr);
  return DNN_SUCCESS;
}

// Convolutions without the graph API: one algorithm. The rows of a table describe them too.

namespace {

struct algorithm {
  int number, status;
  float milliseconds;
  size_t memory;
  int deterministic, math, reserved[3];
};

// A convolution without its tensors.
struct window {
  int count;  // of dimensions
  int64_t pads[most_dimensions], strides[most_dimensions], dilations[most_dimensions];
};

// All functions have the window between the second and the third tensor: forward the input, the
// filter and the output, data the filter, the output and the input, filter the input, the output
// and the filter.
struct area area_of(int operation, const struct tensor *a, const struct tensor *b, const struct window *w,
                    const struct tensor *c) {
  bool forward = operation == DESCRIPTOR_FORWARD, data = operation == DESCRIPTOR_DATA;
  const struct tensor *filter = forward ? b : data ? a : c, *input = data ? c : a, *output = forward ? c : b;
  struct convolution all = {
      operation,
      {&input->type, 1},
      {{filter->dimensions, filter->count}, {filter->strides, filter->count}},
      {{input->dimensions, input->count}, {input->strides, input->count}},
      {{output->dimensions, output->count}, {output->strides, output->count}},
      {w->pads, w->count},
      {w->pads, w->count},
      {w->strides, w->count},
      {w->dilations, w->count},
  };
  char row[longest_row];
  return area_of(row, write_row(&all, row, sizeof row));
}

int one_algorithm(struct area a, int requested, int *returned, struct algorithm *results) {
  *returned = requested > 0 ? 1 : 0;
  if (requested > 0) results[0] = {1, DNN_SUCCESS, 1, a.bytes, 1, 0, {}};
  return DNN_SUCCESS;
}

int convolved(struct area a, const void *at) {
  if (a.guessed) vramyard_guessed(GUESSED_CONVOLUTION, at, nullptr);
  return DNN_SUCCESS;
}

}  // namespace

API int cudnnCreateConvolutionDescriptor(struct window **out) { return make(out); }
API int cudnnDestroyConvolutionDescriptor(struct window *w) { return drop(w); }
API int cudnnSetConvolutionNdDescriptor(struct window *w, int count, const int *pads, const int *strides,
                                        const int *dilations, int, int) {
  if (count < 0 || count > most_dimensions) return DNN_BAD_PARAM;
  w->count = count;
  for (int i = 0; i < count; i++) w->pads[i] = pads[i], w->strides[i] = strides[i], w->dilations[i] = dilations[i];
  return DNN_SUCCESS;
}

#define CONVOLUTION(kind, operation)                                                                                   \
  API int cudnnGetConvolution##kind##Algorithm_v7(void *, struct tensor *a, struct tensor *b, struct window *w,        \
                                                  struct tensor *c, int n, int *returned, struct algorithm *results) { \
    return one_algorithm(area_of(operation, a, b, w, c), n, returned, results);                                        \
  }                                                                                                                    \
  API int cudnnFindConvolution##kind##AlgorithmEx(void *, struct tensor *a, void *, struct tensor *b, void *,          \
                                                  struct window *w, struct tensor *c, void *, int n, int *returned,    \
                                                  struct algorithm *results, void *, size_t) {                         \
    return one_algorithm(area_of(operation, a, b, w, c), n, returned, results);                                        \
  }                                                                                                                    \
  API int cudnnGetConvolution##kind##WorkspaceSize(void *, struct tensor *a, struct tensor *b, struct window *w,       \
                                                   struct tensor *c, int, size_t *size) {                              \
    *size = area_of(operation, a, b, w, c).bytes;                                                                      \
    return DNN_SUCCESS;                                                                                                \
  }                                                                                                                    \
  API int cudnnConvolution##kind(void *, void *, struct tensor *a, void *, struct tensor *b, void *, struct window *w, \
                                 int, void *at, size_t, void *, struct tensor *c, void *) {                            \
    return convolved(area_of(operation, a, b, w, c), at);                                                              \
  }

CONVOLUTION(Forward, DESCRIPTOR_FORWARD)
CONVOLUTION(BackwardData, DESCRIPTOR_DATA)
CONVOLUTION(BackwardFilter, DESCRIPTOR_FILTER)
API int cudnnConvolutionBiasActivationForward(void *, void *, struct tensor *x, void *, struct tensor *filter, void *,
                                              struct window *w, int, void *at, size_t, void *, void *, void *, void *,
                                              void *, void *, struct tensor *y, void *) {
  return convolved(area_of(DESCRIPTOR_FORWARD, x, filter, w, y), at);
}

// Recurrent networks. The matrices of all layers come first, then all biases.

namespace {

struct network {
  int cell, bias, directions, skip, type;
  int64_t input, hidden, projection, layers;
};

enum bias_mode : int { BIAS_NONE = 0, BIAS_INPUT = 1, BIAS_BOTH = 2, BIAS_RECURRENT = 3 };

size_t width_of(int type) {
  switch (type) {
    case 1: case 10: return 8;          // double, int64
    case 2: case 9: return 2;           // half, bfloat16
    case 3: case 6: case 11: return 1;  // int8, uint8, bool
  }
  return 4;
}

// The matrices of half a layer: those for the input, and as many for the state before.
int gates(const struct network *n) { return n->cell == 2 ? 4 : n->cell == 3 ? 3 : 1; }

int64_t state_size(const struct network *n) { return n->projection != 0 ? n->projection : n->hidden; }

struct shape {
  int64_t rows, columns;
};

// The matrix of a linear layer: input, recurrent or, as the last one, projection.
struct shape matrix_of(const struct network *n, int64_t layer, int linear) {
  int half = gates(n);
  if (linear < half) {
    if (layer >= n->directions) return {n->hidden, state_size(n) * n->directions};
    return n->skip != 0 ? shape{0, 0} : shape{n->hidden, n->input};
  }
  if (linear < 2 * half) return {n->hidden, state_size(n)};
  return linear == 2 * half && n->projection != 0 ? shape{n->projection, n->hidden} : shape{0, 0};
}

int64_t bias_of(const struct network *n, int linear) {
  int half = gates(n);
  bool has = linear < half ? n->bias == BIAS_BOTH || n->bias == BIAS_INPUT
                           : linear < 2 * half && (n->bias == BIAS_BOTH || n->bias == BIAS_RECURRENT);
  return has ? n->hidden : 0;
}

// Adds up the elements before a linear layer of a pseudo-layer; those of all for one that is not.
void place_of(const struct network *n, int64_t layer, int linear, int64_t *matrix, int64_t *bias) {
  int64_t matrices = 0, biases = 0;
  *matrix = *bias = -1;
  for (int64_t l = 0; l < n->layers * n->directions; l++) {
    for (int i = 0; i <= 2 * gates(n); i++) {
      if (l == layer && i == linear) *matrix = matrices, *bias = biases;
      struct shape s = matrix_of(n, l, i);
      matrices += s.rows * s.columns;
      biases += bias_of(n, i);
    }
  }
  if (*matrix < 0) *matrix = matrices, *bias = biases;
}

// Describes a matrix or a bias, unless the caller does not ask for it: t or out is null.
void describe_block(struct tensor *t, void **out, const struct network *n, struct shape s, char *weights, int64_t at) {
  int dimensions[] = {1, int(s.rows), int(s.columns)};
  bool none = s.rows * s.columns == 0;
  if (t != nullptr && none) *t = {};
  if (t != nullptr && !none) set_tensor(t, n->type, 0, 3, dimensions, nullptr);
  if (out != nullptr) *out = none ? nullptr : weights + size_t(at) * width_of(n->type);
}

}  // namespace

API int cudnnCreateRNNDescriptor(struct network **out) { return make(out); }
API int cudnnDestroyRNNDescriptor(struct network *n) { return drop(n); }
API int cudnnSetRNNDescriptor_v8(struct network *n, int, int cell, int bias, int direction, int skip, int type, int, int,
                                 int32_t input, int32_t hidden, int32_t projection, int32_t layers, void *, uint32_t) {
  *n = {cell, bias, direction == 0 ? 1 : 2, skip, type, input, hidden, projection == hidden ? 0 : projection, layers};
  return DNN_SUCCESS;
}
API int cudnnGetRNNWeightSpaceSize(void *, struct network *n, size_t *size) {
  int64_t matrices, biases;
  place_of(n, -1, 0, &matrices, &biases);
  *size = size_t(matrices + biases) * width_of(n->type);
  return DNN_SUCCESS;
}
API int cudnnGetRNNWeightParams(void *, struct network *n, int32_t layer, size_t, char *weights, int32_t linear,
                                struct tensor *matrix, void **matrix_at, struct tensor *bias, void **bias_at) {
  int64_t matrices, biases, at, bias_after;
  place_of(n, -1, 0, &matrices, &biases);
  place_of(n, layer, linear, &at, &bias_after);
  describe_block(matrix, matrix_at, n, matrix_of(n, layer, linear), weights, at);
  describe_block(bias, bias_at, n, {bias_of(n, linear), 1}, weights, matrices + bias_after);
  return DNN_SUCCESS;
}
API int cudnnGetRNNTempSpaceSizes(void *, struct network *, int, void *, size_t *work, size_t *reserve) {
  if (work != nullptr) *work = chosen()->bound;
  if (reserve != nullptr) *reserve = chosen()->bound;
  return DNN_SUCCESS;
}

// The functions of cuDNN 7, which PyTorch calls up to 2.3: every network has both biases, and the
// size of the input is in the descriptor of the input, of batch, size and 1.
API int cudnnSetRNNDescriptor_v6(void *, struct network *n, int hidden, int layers, void *, int skip, int direction, int cell,
                                 int, int type) {
  *n = {cell, BIAS_BOTH, direction == 0 ? 1 : 2, skip, type, 0, hidden, 0, layers};
  return DNN_SUCCESS;
}
API int cudnnSetRNNProjectionLayers(void *, struct network *n, int recurrent, int) {
  n->projection = recurrent == n->hidden ? 0 : recurrent;
  return DNN_SUCCESS;
}
API int cudnnGetRNNParamsSize(void *, struct network *n, const struct tensor *x, size_t *size, int) {
  n->input = x->dimensions[1];
  return cudnnGetRNNWeightSpaceSize(nullptr, n, size);
}
API int cudnnGetRNNLinLayerMatrixParams(void *, struct network *n, int layer, const struct tensor *x, void *, char *weights,
                                        int linear, struct tensor *matrix, void **at) {
  n->input = x->dimensions[1];
  return cudnnGetRNNWeightParams(nullptr, n, layer, 0, weights, linear, matrix, at, nullptr, nullptr);
}
API int cudnnGetRNNLinLayerBiasParams(void *, struct network *n, int layer, const struct tensor *x, void *, char *weights,
                                      int linear, struct tensor *bias, void **at) {
  n->input = x->dimensions[1];
  return cudnnGetRNNWeightParams(nullptr, n, layer, 0, weights, linear, nullptr, nullptr, bias, at);
}
API int cudnnGetRNNWorkspaceSize(void *, struct network *, int, void *, size_t *size) {
  *size = chosen()->bound;
  return DNN_SUCCESS;
}
API int cudnnGetRNNTrainingReserveSize(void *, struct network *, int, void *, size_t *size) {
  *size = chosen()->bound;
  return DNN_SUCCESS;
}

namespace {

int recurred(const void *work, const void *reserve) {
  vramyard_guessed(GUESSED_RECURRENT, work, reserve);
  return DNN_SUCCESS;
}

}  // namespace

// The functions of recurrent layers, by the number of arguments before the work area and between it
// and the reserve. All arguments are passed as pointers are.
#define POINTERS_1 void *
#define POINTERS_3 void *, void *, void *
#define POINTERS_9 POINTERS_3, POINTERS_3, POINTERS_3
#define POINTERS_13 POINTERS_9, POINTERS_3, void *
#define POINTERS_17 POINTERS_13, POINTERS_3, void *
#define POINTERS_19 POINTERS_17, void *, void *
#define POINTERS_23 POINTERS_19, POINTERS_3, void *
#define RECURRENT(name, before, between) \
  API int name(POINTERS_##before, void *work, POINTERS_##between, void *reserve) { return recurred(work, reserve); }

RECURRENT(cudnnRNNForward, 17, 1)
RECURRENT(cudnnRNNForwardTraining, 17, 1)
RECURRENT(cudnnRNNBackwardData, 23, 1)
RECURRENT(cudnnRNNBackwardData_v8, 19, 1)
RECURRENT(cudnnRNNBackwardWeights, 9, 3)
RECURRENT(cudnnRNNBackwardWeights_v8, 13, 1)
API int cudnnRNNForwardInference(POINTERS_17, void *work) { return recurred(work, nullptr); }
