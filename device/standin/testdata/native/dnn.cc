// The dialogue of a convolution finds its row in the table, and the weights of recurrent networks
// fill their space without overlap.
#define HOST
#include "dnn.h"

#include <initializer_list>

#include "check.h"

// The functions of each kind of convolution without the graph API.
typedef int get_algorithm(void *, void *, void *, void *, void *, int, int *, void *);
typedef int find_algorithm(void *, void *, void *, void *, void *, void *, void *, void *, int, int *, void *, void *,
                           size_t);
typedef int get_size(void *, void *, void *, void *, void *, int, size_t *);
typedef int convolve(void *, void *, void *, void *, void *, void *, void *, int, void *, size_t, void *, void *, void *);

extern "C" {
int cudnnBackendCreateDescriptor(int, struct descriptor **);
int cudnnBackendDestroyDescriptor(struct descriptor *);
int cudnnBackendSetAttribute(struct descriptor *, int, int, int64_t, const void *);
int cudnnBackendGetAttribute(struct descriptor *, int, int, int64_t, int64_t *, void *);
int cudnnBackendExecute(void *, struct descriptor *, struct descriptor *);
int cudnnCreateTensorDescriptor(void **);
int cudnnDestroyTensorDescriptor(void *);
int cudnnSetTensorNdDescriptor(void *, int, int, const int *, const int *);
int cudnnGetTensorNdDescriptor(void *, int, int *, int *, int *, int *);
get_algorithm cudnnGetConvolutionForwardAlgorithm_v7, cudnnGetConvolutionBackwardDataAlgorithm_v7,
    cudnnGetConvolutionBackwardFilterAlgorithm_v7;
find_algorithm cudnnFindConvolutionForwardAlgorithmEx, cudnnFindConvolutionBackwardDataAlgorithmEx,
    cudnnFindConvolutionBackwardFilterAlgorithmEx;
get_size cudnnGetConvolutionForwardWorkspaceSize, cudnnGetConvolutionBackwardDataWorkspaceSize,
    cudnnGetConvolutionBackwardFilterWorkspaceSize;
convolve cudnnConvolutionForward, cudnnConvolutionBackwardData, cudnnConvolutionBackwardFilter;
int cudnnConvolutionBiasActivationForward(void *, void *, void *, void *, void *, void *, void *, int, void *, size_t,
                                          void *, void *, void *, void *, void *, void *, void *, void *);
int cudnnCreateConvolutionDescriptor(void **);
int cudnnDestroyConvolutionDescriptor(void *);
int cudnnSetConvolutionNdDescriptor(void *, int, const int *, const int *, const int *, int, int);
int cudnnCreateFilterDescriptor(void **);
int cudnnDestroyFilterDescriptor(void *);
int cudnnSetFilterNdDescriptor(void *, int, int, int, const int *);
int cudnnGetFilterNdDescriptor(void *, int, int *, int *, int *, int *);
int cudnnCreateRNNDescriptor(void **);
int cudnnDestroyRNNDescriptor(void *);
int cudnnSetRNNDescriptor_v8(void *, int, int, int, int, int, int, int, int, int, int, int, int, void *, unsigned);
int cudnnGetRNNWeightSpaceSize(void *, void *, size_t *);
int cudnnGetRNNWeightParams(void *, void *, int, size_t, void *, int, void *, void **, void *, void **);
int cudnnSetRNNDescriptor_v6(void *, void *, int, int, void *, int, int, int, int, int);
int cudnnSetRNNProjectionLayers(void *, void *, int, int);
int cudnnGetRNNParamsSize(void *, void *, void *, size_t *, int);
int cudnnGetRNNLinLayerMatrixParams(void *, void *, int, void *, void *, void *, int, void *, void **);
int cudnnGetRNNLinLayerBiasParams(void *, void *, int, void *, void *, void *, int, void *, void **);
}

namespace {

struct descriptor *make(int type) {
  struct descriptor *d;
  CHECK(cudnnBackendCreateDescriptor(type, &d) == 0);
  return d;
}

void set(struct descriptor *d, int name, struct descriptor *value) {
  CHECK(cudnnBackendSetAttribute(d, name, ELEMENT_DESCRIPTOR, 1, &value) == 0);
}

void set(struct descriptor *d, int name, int64_t first, int64_t second) {
  int64_t values[] = {first, second};
  CHECK(cudnnBackendSetAttribute(d, name, ELEMENT_INT64, 2, values) == 0);
}

// Returns the number of elements of an attribute.
int64_t get(struct descriptor *d, int name, int type, int64_t room, void *elements) {
  int64_t count = -1;
  CHECK(cudnnBackendGetAttribute(d, name, type, room, &count, elements) == 0);
  return count;
}

struct descriptor *tensor(int64_t rows, int64_t columns) {
  struct descriptor *d = make(17);
  int type = 2;
  CHECK(cudnnBackendSetAttribute(d, TENSOR_TYPE, ELEMENT_DATA_TYPE, 1, &type) == 0);
  set(d, TENSOR_DIMENSIONS, rows, columns);
  set(d, TENSOR_STRIDES, columns, 1);
  return d;
}

// Asks for the work area of a convolution whose input has so many rows. Every descriptor but the
// plan is destroyed before the plan is asked.
int64_t work_area(int operation, int first, int64_t rows) {
  struct descriptor *w = tensor(3, 3), *x = tensor(rows, 8), *y = tensor(rows, 6), *c = make(1), *o = make(operation);
  struct descriptor *graph = make(DESCRIPTOR_GRAPH), *heuristics = make(4), *config = make(3), *engine = make(2);
  struct descriptor *plan = make(5);
  set(c, CONVOLUTION_PRE_PADDINGS, 0, 1);
  set(c, CONVOLUTION_POST_PADDINGS, 0, 1);
  set(c, CONVOLUTION_STRIDES, 1, 1);
  set(c, CONVOLUTION_DILATIONS, 2, 1);
  set(o, first, c);
  set(o, first + 1, w);
  set(o, first + 2, x);
  set(o, first + 3, y);
  set(graph, GRAPH_OPERATIONS, o);
  set(heuristics, HEURISTICS_GRAPH, graph);
  CHECK(get(heuristics, HEURISTICS_RESULTS, ELEMENT_DESCRIPTOR, 0, nullptr) == 1);
  CHECK(get(heuristics, HEURISTICS_RESULTS, ELEMENT_DESCRIPTOR, 1, &config) == 1);
  CHECK(get(config, CONFIG_ENGINE, ELEMENT_DESCRIPTOR, 1, &engine) == 1);
  CHECK(get(engine, 1303, 10, 9, nullptr) == 0);
  set(plan, 401, config);
  for (struct descriptor *d : {w, x, y, c, o, graph, heuristics, config, engine}) {
    cudnnBackendDestroyDescriptor(d);
  }
  int64_t size = -1;
  CHECK(get(plan, PLAN_WORKSPACE, ELEMENT_INT64, 1, &size) == 1);
  struct descriptor *pack = make(16);
  const void *area = &size;
  CHECK(cudnnBackendSetAttribute(pack, PACK_WORKSPACE, 6, 1, &area) == 0);
  areas[0] = nullptr;
  int before = guesses[GUESSED_CONVOLUTION];
  CHECK(cudnnBackendExecute(nullptr, plan, pack) == 0);
  CHECK(areas[0] == (guesses[GUESSED_CONVOLUTION] > before ? area : nullptr));
  cudnnBackendDestroyDescriptor(pack);
  cudnnBackendDestroyDescriptor(plan);
  return size;
}

struct algorithm {
  int number, status;
  float milliseconds;
  size_t memory;
  int rest[5];
};

struct old_functions {
  get_algorithm *get;
  find_algorithm *find;
  get_size *size;
  convolve *execute;
};

// Asks the functions for the work area of a convolution, in the order of their arguments.
int64_t old_work_area(const struct old_functions &f, void *a, void *b, void *window, void *c) {
  struct algorithm got = {}, found = {};
  int count = 0;
  size_t size = 0;
  CHECK(f.get(nullptr, a, b, window, c, 1, &count, &got) == 0 && count == 1);
  CHECK(f.find(nullptr, a, nullptr, b, nullptr, window, c, nullptr, 0, &count, &found, nullptr, 0) == 0 && count == 0);
  CHECK(f.find(nullptr, a, nullptr, b, nullptr, window, c, nullptr, 5, &count, &found, nullptr, 0) == 0 && count == 1);
  CHECK(f.size(nullptr, a, b, window, c, 1, &size) == 0 && got.memory == size && found.memory == size);
  areas[0] = nullptr;
  int before = guesses[GUESSED_CONVOLUTION];
  CHECK(f.execute(nullptr, nullptr, a, nullptr, b, nullptr, window, 1, &size, size, nullptr, c, nullptr) == 0);
  CHECK(areas[0] == (guesses[GUESSED_CONVOLUTION] > before ? &size : nullptr));
  return int64_t(size);
}

#define OLD(kind)                                                                     \
  {                                                                                   \
    cudnnGetConvolution##kind##Algorithm_v7, cudnnFindConvolution##kind##AlgorithmEx, \
        cudnnGetConvolution##kind##WorkspaceSize, cudnnConvolution##kind              \
  }

// The rows of a table hold for the older functions too. Filters have the strides of their format.
void older_convolutions() {
  void *x, *y, *w, *last, *window;
  CHECK(cudnnCreateTensorDescriptor(&x) == 0 && cudnnCreateTensorDescriptor(&y) == 0);
  CHECK(cudnnCreateFilterDescriptor(&w) == 0 && cudnnCreateFilterDescriptor(&last) == 0);
  CHECK(cudnnCreateConvolutionDescriptor(&window) == 0);
  const int in[] = {4, 3, 64, 64}, in_strides[] = {12288, 4096, 64, 1}, out[] = {4, 16, 62, 62};
  const int out_strides[] = {61504, 3844, 62, 1}, filter[] = {16, 3, 5, 2};
  const int pads[] = {0, 2}, ones[] = {1, 1}, by[] = {1, 3};
  CHECK(cudnnSetTensorNdDescriptor(x, 2, 4, in, in_strides) == 0);
  CHECK(cudnnSetTensorNdDescriptor(y, 2, 4, out, out_strides) == 0);
  CHECK(cudnnSetFilterNdDescriptor(w, 2, 0, 4, filter) == 0 && cudnnSetFilterNdDescriptor(last, 2, 1, 4, filter) == 0);
  CHECK(cudnnSetConvolutionNdDescriptor(window, 2, pads, ones, by, 1, 0) == 0);
  CHECK(cudnnSetConvolutionNdDescriptor(window, 9, pads, ones, by, 1, 0) != 0);
  const struct old_functions forward = OLD(Forward), data = OLD(BackwardData), gradient = OLD(BackwardFilter);
  int before = guesses[GUESSED_CONVOLUTION];
  CHECK(old_work_area(forward, x, w, window, y) == 1000 && old_work_area(forward, x, last, window, y) == 2000);
  CHECK(old_work_area(data, w, y, window, x) == 3000 && old_work_area(gradient, x, y, window, w) == 4000);
  CHECK(cudnnConvolutionBiasActivationForward(nullptr, nullptr, x, nullptr, w, nullptr, window, 1, nullptr, 0, nullptr,
                                              nullptr, nullptr, nullptr, nullptr, nullptr, y, nullptr) == 0);
  CHECK(guesses[GUESSED_CONVOLUTION] == before);
  CHECK(old_work_area(gradient, x, y, window, last) == 0 && guesses[GUESSED_CONVOLUTION] == before + 1);
  int type, format, count, dimensions[4];
  CHECK(cudnnGetFilterNdDescriptor(last, 4, &type, &format, &count, dimensions) == 0);
  CHECK(type == 2 && format == 1 && count == 4 && dimensions[0] == 16 && dimensions[3] == 2);
  for (void *t : {x, y}) cudnnDestroyTensorDescriptor(t);
  for (void *t : {w, last}) cudnnDestroyFilterDescriptor(t);
  cudnnDestroyConvolutionDescriptor(window);
}

void recurrent(int cell, int gates, int directions, int input, int hidden, int projection, int layers) {
  void *n, *matrix, *bias, *old, *x;
  CHECK(cudnnCreateRNNDescriptor(&n) == 0 && cudnnCreateRNNDescriptor(&old) == 0);
  CHECK(cudnnCreateTensorDescriptor(&matrix) == 0 && cudnnCreateTensorDescriptor(&bias) == 0);
  const int batch[] = {5, input, 1};
  CHECK(cudnnCreateTensorDescriptor(&x) == 0 && cudnnSetTensorNdDescriptor(x, 0, 3, batch, batch) == 0);
  CHECK(cudnnSetRNNDescriptor_v6(nullptr, old, hidden, layers, nullptr, 0, directions - 1, cell, 0, 0) == 0);
  CHECK(cudnnSetRNNProjectionLayers(nullptr, old, projection, 0) == 0);
  CHECK(cudnnSetRNNDescriptor_v8(n, 0, cell, 2, directions - 1, 0, 0, 0, 0, input, hidden, projection, layers, nullptr,
                                 0) == 0);
  size_t size;
  CHECK(cudnnGetRNNWeightSpaceSize(nullptr, n, &size) == 0);
  size_t old_size;
  CHECK(cudnnGetRNNParamsSize(nullptr, old, x, &old_size, 0) == 0 && old_size == size);
  char *space = static_cast<char *>(calloc(size, 1));
  for (int layer = 0; layer < layers * directions; layer++) {
    for (int linear = 0; linear < 2 * gates + (projection != hidden); linear++) {
      void *at[2];
      CHECK(cudnnGetRNNWeightParams(nullptr, n, layer, size, space, linear, matrix, &at[0], bias, &at[1]) == 0);
      void *same[2];
      CHECK(cudnnGetRNNLinLayerMatrixParams(nullptr, old, layer, x, nullptr, space, linear, matrix, &same[0]) == 0);
      CHECK(cudnnGetRNNLinLayerBiasParams(nullptr, old, layer, x, nullptr, space, linear, bias, &same[1]) == 0);
      CHECK(same[0] == at[0] && same[1] == at[1]);
      for (int k = 0; k < 2; k++) {
        int type, count, dimensions[3], strides[3], elements = 1;
        CHECK(cudnnGetTensorNdDescriptor(k == 0 ? matrix : bias, 3, &type, &count, dimensions, strides) == 0);
        CHECK(count == 3 || (k == 1 && linear == 2 * gates));
        for (int i = 0; i < count; i++) elements *= dimensions[i];
        char *block = static_cast<char *>(at[k]);
        for (int i = 0; block != nullptr && i < 4 * elements; i++) CHECK(block[i]++ == 0);
      }
      CHECK(cudnnGetRNNWeightParams(nullptr, n, layer, size, space, linear, matrix, &at[0], nullptr, nullptr) == 0);
    }
  }
  for (size_t i = 0; i < size; i++) CHECK(space[i] == 1);
  free(space);
  cudnnDestroyTensorDescriptor(matrix);
  cudnnDestroyTensorDescriptor(bias);
  cudnnDestroyTensorDescriptor(x);
  cudnnDestroyRNNDescriptor(n);
  cudnnDestroyRNNDescriptor(old);
}

}  // namespace

int main(int, char **arguments) {
  FILE *table = fopen(arguments[1], "w");
  CHECK(table != nullptr);
  fputs("# measured\nforward type=2 w=3,3:3,1 x=9,8:8,1 y=9,6:6,1 pad=0,1:0,1 stride=1,1 dilation=2,1 4096\n", table);
  fputs("filter type=2 w=3,3:3,1 x=9,8:8,1 y=9,6:6,1 pad=0,1:0,1 stride=1,1 dilation=2,1 512\n", table);
  const char *rest = "x=4,3,64,64:12288,4096,64,1 y=4,16,62,62:61504,3844,62,1 pad=0,2:0,2 stride=1,1 dilation=1,3";
  fprintf(table, "forward type=2 w=16,3,5,2:30,10,2,1 %s 1000\n", rest);
  fprintf(table, "forward type=2 w=16,3,5,2:30,1,6,3 %s 2000\n", rest);
  fprintf(table, "data type=2 w=16,3,5,2:30,10,2,1 %s 3000\nfilter type=2 w=16,3,5,2:30,10,2,1 %s 4000\n", rest, rest);
  fclose(table);
  char policy[4096];
  snprintf(policy, sizeof policy, "table=%s", arguments[1]);
  setenv("VRAMYARD_CUDNN", policy, 1);
  CHECK(work_area(DESCRIPTOR_FORWARD, FORWARD_CONVOLUTION, 9) == 4096);
  CHECK(work_area(DESCRIPTOR_FILTER, FILTER_CONVOLUTION, 9) == 512 && guesses[GUESSED_CONVOLUTION] == 0);
  CHECK(work_area(DESCRIPTOR_FORWARD, FORWARD_CONVOLUTION, 90) == 0 && guesses[GUESSED_CONVOLUTION] == 1);
  CHECK(work_area(DESCRIPTOR_DATA, DATA_CONVOLUTION, 9) == 0 && guesses[GUESSED_CONVOLUTION] == 2);

  older_convolutions();

  struct descriptor *other = make(5);
  CHECK(cudnnBackendExecute(nullptr, other, nullptr) == 0 && guesses[GUESSED_OTHER] == 1);
  cudnnBackendDestroyDescriptor(other);

  // A convolution without descriptors, or with numbers in their place, is no convolution.
  struct descriptor *graph = make(DESCRIPTOR_GRAPH), *operation = make(DESCRIPTOR_FORWARD);
  set(graph, GRAPH_OPERATIONS, operation);
  CHECK(cudnnBackendExecute(nullptr, graph, nullptr) == 0 && guesses[GUESSED_OTHER] == 2);
  for (int i = 0; i < 4; i++) set(operation, FORWARD_CONVOLUTION + i, 5, 6);
  CHECK(cudnnBackendExecute(nullptr, graph, nullptr) == 0 && guesses[GUESSED_OTHER] == 3);
  cudnnBackendDestroyDescriptor(operation);
  cudnnBackendDestroyDescriptor(graph);

  void *t;
  int dimensions[9] = {4, 3, 2, 1}, strides[9] = {6, 2, 1, 1};
  CHECK(cudnnCreateTensorDescriptor(&t) == 0 && cudnnSetTensorNdDescriptor(t, 0, 9, dimensions, strides) != 0);
  CHECK(cudnnDestroyTensorDescriptor(t) == 0);

  recurrent(0, 1, 1, 5, 7, 7, 1);
  recurrent(2, 4, 1, 5, 7, 7, 3);
  recurrent(2, 4, 2, 5, 7, 3, 2);
  recurrent(3, 3, 2, 5, 7, 7, 2);
}
