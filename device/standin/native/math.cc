// What PyTorch reads from cuBLASLt and from CUPTI. functions.txt has the rest.
#include "standin.h"

API size_t cublasLtGetVersion(void) { return 120400; }

API int cuptiGetVersion(uint32_t *version) {
  *version = 22;
  return 0;
}
API int cuptiGetResultString(int status, const char **text) {
  *text = status == 0 ? "no error" : "operation not supported";
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
