// Kernels are found by their host function and fill memory as PyTorch's do; captures follow CUDA's
// rules.
#define HOST
#include "check.h"
#include "runtime.h"

struct dim3 {
  unsigned x, y, z;
};
extern "C" {
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
unsigned __cudaPushCallConfiguration(struct dim3, struct dim3, size_t, void *);
int __cudaPopCallConfiguration(struct dim3 *, struct dim3 *, size_t *, void **);
int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t, void *);
int cudaFuncGetName(const char **, const void *);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t);
int cudaMalloc(void **, size_t);
int cudaMallocPitch(void **, size_t *, size_t, size_t);
int cudaDeviceGetPCIBusId(char *, int, int);
int cudaFree(void *);
int cudaGetLastError(void);
int cudaStreamCreate(void **);
int cudaEventCreate(void **);
int cudaEventRecord(void *, void *);
int cudaEventDestroy(void *);
int cudaStreamWaitEvent(void *, void *, unsigned);
int cudaStreamBeginCapture(void *, int);
int cudaStreamEndCapture(void *, void **);
int cudaStreamIsCapturing(void *, int *);
}

namespace {

const int functions = 40000;
char host[functions];

void launch(const char *function, void *count, void *functor, void *to) {
  void *arguments[] = {count, functor, &to};
  CHECK(cudaLaunchKernel(function, {1, 1, 1}, {1, 1, 1}, arguments, 0, nullptr) == SUCCESS);
}

void kernels() {
  uint32_t nothing[16] = {};
  void **binary = __cudaRegisterFatBinary(nothing);
  auto enter = [&](int i, const char *name) {
    __cudaRegisterFunction(binary, &host[i], nullptr, name, 0, nullptr, nullptr, nullptr, nullptr, nullptr);
  };
  for (int i = 2; i < functions; i++) enter(i, "name");
  const char *fill = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIsEE";
  const char *range = "_ZN17_RangeFactories_cu29elementwise_kernel_with_indexIlZZZN2at6native"
                      "15arange_cuda_outEvENKUlvE_clEvENKUlvE3_clEvE";
  enter(0, fill);
  enter(1, range);
  const char *name;
  CHECK(cudaFuncGetName(&name, &host[functions - 1]) == SUCCESS && strcmp(name, "name") == 0);
  CHECK(cudaFuncGetName(&name, &name) == INVALID_DEVICE_FUNCTION && cudaGetLastError() == INVALID_DEVICE_FUNCTION);
  int16_t to[4] = {};
  int count = 3;
  int16_t seven = 7;
  launch(&host[0], &count, &seven, to);
  CHECK(to[0] == 7 && to[2] == 7 && to[3] == 0);
  int64_t n = 3, start_step[] = {5, -2};
  launch(&host[1], &n, start_step, to);
  CHECK(to[0] == 5 && to[1] == 3 && to[2] == 1 && to[3] == 0);
  launch(&host[2], &n, start_step, to);
  CHECK(to[0] == 5);
  int blocks;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &host[2], 256, 0) == SUCCESS && blocks == 8);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &host[2], 256, SIZE_MAX - 1023) == SUCCESS && blocks == 1);
  n = (1 << 20) + 1;
  launch(&host[1], &n, start_step, to);
  CHECK(changed == size_t(n) * sizeof *to);
  changed = 0;
}

// A number is added to tensors, and what is added by another kernel is unknown.
void sums() {
  const char *names[] = {
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_22CUDAFunctorOnSelf_addIlEESt5arrayIPcLm2EEEEviT0_T1_",
      "_ZN2at6native27unrolled_elementwise_kernelINS0_22CUDAFunctorOnSelf_addIlEESt5arrayIPcLm2EELi4E16OffsetCalculatorILi1EE",
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIlEESt5arrayIPcLm3EEEEviT0_T1_",
      "_ZN2at6native1_25multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEENS1_21BinaryOpScalarFunctorIfLi1ELi1ELi0EEEJ"
      "St4plusIfEfEEEvT_T0_DpT1_",
  };
  void **binary = __cudaRegisterFatBinary(nullptr);
  static char hosts[4];
  for (int i = 0; i < 4; i++) {
    __cudaRegisterFunction(binary, &hosts[i], nullptr, names[i], 0, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  int64_t from[] = {4, 5, 6}, to[3] = {}, functor[] = {3, -2};
  int count = 2;
  void *places[] = {to, from}, *arguments[] = {&count, functor, places};
  auto run = [&](int i, unsigned blocks, void **with) {
    CHECK(cudaLaunchKernel(&hosts[i], {blocks, 1, 1}, {1, 1, 1}, with, 0, nullptr) == SUCCESS);
  };
  run(0, 1, arguments);
  CHECK(to[0] == -2 && to[1] == -1 && to[2] == 0 && changed == 0);
  run(1, 1, arguments);
  run(2, 1, arguments);
  CHECK(to[0] == -2 && changed == 2 * 2 * sizeof *to);

  struct {
    void *addresses[110];
    int64_t numbers[110];
    unsigned char tensors[320];
    int chunks[320];
  } list = {};
  float one[] = {1}, two[] = {2, 3}, by = 0.5;
  list.addresses[0] = one, list.numbers[0] = 1;
  list.addresses[1] = two, list.numbers[1] = 2, list.tensors[1] = 1;
  void *all[] = {&list, nullptr, nullptr, &by};
  run(3, 2, all);
  CHECK(one[0] == 1.5 && two[0] == 2.5 && two[1] == 3.5);
  list.tensors[1] = 0, list.chunks[1] = 1;  // a large tensor has two chunks
  changed = 0;
  run(3, 2, all);
  CHECK(one[0] == 1.5 && changed == 2 * sizeof *one);
}

// A kernel changes as many bytes as its elements have, by the type in its name.
void widths() {
  const struct {
    const char *name;
    size_t bytes;  // of one element
  } kernels[] = {
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIhEESt5arrayIPcLm3EEEEviT0_T1_", 1},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_", 2},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_", 4},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIlEENS_6detail5ArrayIPcLi3EEEEEviT0_T1_", 8},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_10AbsFunctorIN3c107complexIdEEEESt5arrayIPcLm2EEEEviT0_T1_", 16},
      // A functor with the types of its operands and of its result: a comparison is a bool.
      {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorIddbZZZNS0_23logical_and_kernel_cudaE"
       "EUlddE_EESt5arrayIPcLm2EEEEviT0_T1_", 1},
      {"_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_13BinaryFunctorIN3c104HalfES4_S4_NS0_10MulFunctorIfEEEE"
       "St5arrayIPcLm3EEEEviT0_T1_", 2},
      // A lambda, with its operands or, in a class that nvcc makes for it, its whole signature.
      {"_ZN2at6native29vectorized_elementwise_kernelILi4EZZNS0_17where_kernel_implERNS_14TensorIteratorEENKUlvE_clEvEUlbssE_"
       "St5arrayIPcLm4EEEEviT0_T1_", 2},
      {"_ZN2at6native29vectorized_elementwise_kernelILi4E18__nv_hdl_wrapper_tILb0ELb1ELb0E11__nv_dl_tagIPFvRNS_18"
       "TensorIteratorBaseEEXadL_ZNS0_16atan_kernel_cudaES5_EELj3EEFN3c104HalfESA_EJEESt5arrayIPcLm2EEEEviT0_T1_", 2},
      // A kernel that casts has the bytes in an argument.
      {"_ZN2at6native27unrolled_elementwise_kernelINS0_10AbsFunctorIdEESt5arrayIPcLm2EELi4E23TrivialOffsetCalculatorILi1EjES8_"
       "NS0_6memory12LoadWithCastILi1EEENS9_13StoreWithCastILi1EEEEEviT_T0_T2_T3_T4_T5_", 4},
  };
  void **binary = __cudaRegisterFatBinary(nullptr);
  static char hosts[sizeof kernels / sizeof kernels[0]], *host = hosts;
  for (const auto &k : kernels) {
    __cudaRegisterFunction(binary, host, nullptr, k.name, 0, nullptr, nullptr, nullptr, nullptr, nullptr);
    int count = 3;
    char functor[16] = {}, result[64] = {}, *places[] = {result, result, result};
    uint32_t store[] = {6, 4};
    void *arguments[] = {&count, functor, places, nullptr, nullptr, nullptr, store};
    changed = 0;
    CHECK(cudaLaunchKernel(host++, {1, 1, 1}, {1, 1, 1}, arguments, 0, nullptr) == SUCCESS);
    if (changed != 3 * k.bytes) printf("%s\n", k.name);
    CHECK(changed == 3 * k.bytes);
  }
}

// Numbers are added in the type of the elements: integers wrap around, and types that are not
// computed become unknown.
template <typename T>
void adds(const char *type, T value, T number, T want) {
  char name[256], *host = static_cast<char *>(malloc(1));
  snprintf(name, sizeof name,
           "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_22CUDAFunctorOnSelf_addI%sEESt5arrayIPcLm2EEEEviT0_T1_", type);
  void **binary = __cudaRegisterFatBinary(nullptr);
  __cudaRegisterFunction(binary, host, nullptr, strdup(name), 0, nullptr, nullptr, nullptr, nullptr, nullptr);
  T tensor[] = {value, value, 0}, functor[] = {number, T(1)};
  int count = 2;
  void *places[] = {tensor, tensor}, *arguments[] = {&count, functor, places};
  changed = 0;
  CHECK(cudaLaunchKernel(host, {1, 1, 1}, {1, 1, 1}, arguments, 0, nullptr) == SUCCESS);
  CHECK(tensor[0] == want && tensor[1] == want && tensor[2] == 0);
  CHECK(changed == (want == value ? 2 * sizeof(T) : 0));
}

void additions() {
  adds<uint8_t>("h", 250, 10, 4);
  adds<int16_t>("s", 32767, 1, -32768);
  adds<int32_t>("i", 2147483647, 1, -2147483647 - 1);
  adds<int64_t>("l", INT64_MAX, 1, INT64_MIN);
  adds<float>("f", 1, 0.5, 1.5);
  adds<uint16_t>("N3c104HalfE", 1, 2, 1);
  adds<bool>("b", true, true, true);
}

void configurations() {
  struct dim3 grid = {1, 2, 3}, block = {4, 5, 6};
  size_t shared = 0;
  void *stream = nullptr;
  CHECK(__cudaPushCallConfiguration(grid, block, 7, &grid) == 0);
  grid = block = {};
  CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == SUCCESS);
  CHECK(grid.z == 3 && block.x == 4 && shared == 7 && stream == &grid);
  CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) != SUCCESS);
  cudaGetLastError();
}

// Sizes that overflow are refused, and devices have their addresses.
void sizes() {
  void *p;
  size_t pitch;
  CHECK(cudaMallocPitch(&p, &pitch, 1, SIZE_MAX / 2) == INVALID_VALUE);
  CHECK(cudaMallocPitch(&p, &pitch, SIZE_MAX, 1) == INVALID_VALUE && cudaGetLastError() == INVALID_VALUE);
  CHECK(cudaMallocPitch(&p, &pitch, 513, 2) == SUCCESS && pitch == 1024 && cudaFree(p) == SUCCESS);
  char id[13];
  CHECK(cudaDeviceGetPCIBusId(id, 13, 9) == SUCCESS && strcmp(id, "0000:0A:00.0") == 0);
}

// A graph adds at every launch: what it adds to is unknown.
void captured_sums() {
  static char host;
  __cudaRegisterFunction(
      __cudaRegisterFatBinary(nullptr), &host, nullptr,
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_22CUDAFunctorOnSelf_addIlEESt5arrayIPcLm2EEEEviT0_T1_", 0,
      nullptr, nullptr, nullptr, nullptr, nullptr);
  int64_t counter = 4, functor[] = {1, 1};
  int count = 1;
  void *places[] = {&counter, &counter}, *arguments[] = {&count, functor, places}, *stream, *graph;
  CHECK(cudaStreamCreate(&stream) == SUCCESS && cudaStreamBeginCapture(stream, 0) == SUCCESS);
  changed = 0;
  CHECK(cudaLaunchKernel(&host, {1, 1, 1}, {1, 1, 1}, arguments, 0, stream) == SUCCESS);
  CHECK(counter == 4 && changed == sizeof counter && cudaStreamEndCapture(stream, &graph) == SUCCESS);
  CHECK(cudaLaunchKernel(&host, {1, 1, 1}, {1, 1, 1}, arguments, 0, stream) == SUCCESS && counter == 5);
}

void captures() {
  void *a, *b, *event, *graph, *memory;
  CHECK(cudaStreamCreate(&a) == SUCCESS && cudaStreamCreate(&b) == SUCCESS && cudaEventCreate(&event) == SUCCESS);
  CHECK(cudaStreamBeginCapture(nullptr, 0) == CAPTURE_UNSUPPORTED);
  CHECK(cudaStreamBeginCapture(a, 0) == SUCCESS && cudaStreamBeginCapture(a, 0) == ILLEGAL_CAPTURE_STATE);
  int status;
  CHECK(cudaStreamIsCapturing(b, &status) == SUCCESS && status == 0);
  CHECK(cudaEventRecord(event, a) == SUCCESS && cudaStreamWaitEvent(b, event, 0) == SUCCESS);
  CHECK(cudaStreamIsCapturing(b, &status) == SUCCESS && status == 1);
  CHECK(cudaStreamEndCapture(a, &graph) == SUCCESS && graph != nullptr);
  CHECK(cudaStreamIsCapturing(b, &status) == SUCCESS && status == 0);
  CHECK(cudaStreamBeginCapture(a, 0) == SUCCESS && cudaMalloc(&memory, 512) == CAPTURE_UNSUPPORTED);
  CHECK(cudaStreamEndCapture(a, &graph) == CAPTURE_INVALIDATED && graph == nullptr);
  CHECK(cudaStreamEndCapture(a, &graph) == ILLEGAL_CAPTURE_STATE);
  CHECK(cudaMalloc(&memory, 512) == SUCCESS && cudaFree(memory) == SUCCESS && cudaEventDestroy(event) == SUCCESS);
}

}  // namespace

int main() {
  kernels();
  sums();
  widths();
  additions();
  configurations();
  captures();
  captured_sums();
  sizes();
}
