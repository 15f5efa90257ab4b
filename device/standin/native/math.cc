// What PyTorch reads from the math libraries, beside kernels: versions, error texts and the answer
// of cuBLASLt's heuristic. functions.txt has the rest.
#include "standin.h"

#ifndef CUDNN_VERSION
#define CUDNN_VERSION 90100
#endif

API const char *cublasGetStatusString(int) { return "operation not supported"; }
API const char *cublasLtGetStatusString(int) { return "operation not supported"; }
API const char *cudnnGetErrorString(int) { return "operation not supported"; }
API void cudnnGetLastErrorString(char *text, size_t size) {
  if (size > 0) text[0] = 0;
}
API const char *cusparseGetErrorString(int) { return "operation not supported"; }
API const char *cusparseGetErrorName(int) { return "CUSPARSE_STATUS_NOT_SUPPORTED"; }

API size_t cublasLtGetVersion(void) { return 120400; }
API size_t cudnnGetVersion(void) { return CUDNN_VERSION; }
API size_t cudnnGetCudartVersion(void) { return 12080; }
API int cudnnGetProperty(int type, int *value) {
  const int base = CUDNN_VERSION >= 90000 ? 10000 : 1000;
  *value = type == 0 ? CUDNN_VERSION / base : type == 1 ? CUDNN_VERSION % base / 100 : CUDNN_VERSION % 100;
  return 0;
}

// One algorithm that needs no workspace. Without any PyTorch would raise an error.
struct heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
API int cublasLtMatmulAlgoGetHeuristic(void *, void *, void *, void *, void *, void *, void *, int requested,
                                       struct heuristic *results, int *returned) {
  *returned = requested > 0 ? 1 : 0;
  if (requested > 0) results[0] = {};
  return 0;
}
