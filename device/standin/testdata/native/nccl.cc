// Communicators have their ranks, and collectives copy the rank's own part.
#define HOST
#include "check.h"

struct unique {
  char bytes[128];
};
extern "C" {
int ncclGetVersion(int *);
int ncclGetUniqueId(struct unique *);
const char *ncclGetErrorString(int);
const char *ncclGetLastError(void *);
int ncclCommInitRank(void **, int, struct unique, int);
int ncclCommInitAll(void **, int, const int *);
int ncclCommSplit(void *, int, int, void **, void *);
int ncclCommCount(void *, int *);
int ncclCommUserRank(void *, int *);
int ncclCommDestroy(void *);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
int ncclAllGather(const void *, void *, size_t, int, void *, void *);
int ncclReduceScatter(const void *, void *, size_t, int, int, void *, void *);
int ncclBroadcast(const void *, void *, size_t, int, int, void *, void *);
int ncclRecv(void *, size_t, int, int, void *, void *);
int ncclMemAlloc(void **, size_t);
int ncclMemFree(void *);
}

int main() {
  int n = 0;
  struct unique id;
  void *c, *part, *memory;
  CHECK(ncclGetVersion(&n) == 0 && n > 20000 && ncclGetUniqueId(&id) == 0);
  CHECK(strlen(ncclGetErrorString(5)) > 0 && strlen(ncclGetLastError(nullptr)) == 0);
  CHECK(ncclCommInitRank(&c, 2, id, 2) != 0 && c == nullptr);
  CHECK(ncclCommInitRank(&c, 3, id, 2) == 0);
  CHECK(ncclCommCount(c, &n) == 0 && n == 3 && ncclCommUserRank(c, &n) == 0 && n == 2);
  CHECK(ncclCommSplit(c, 0, 0, &part, nullptr) != 0 && ncclCommSplit(c, -1, 0, &part, nullptr) == 0 && part == nullptr);

  const int32_t from[6] = {1, 2, 3, 4, 5, 6};
  int32_t to[6] = {};
  CHECK(ncclRecv(to, 3, 2, 0, c, nullptr) == 0 && changed == 3 * sizeof *to);
  CHECK(ncclAllReduce(from, to, 6, 2, 0, c, nullptr) == 0 && memcmp(from, to, sizeof to) == 0);
  CHECK(ncclAllGather(from, to, 2, 2, c, nullptr) == 0 && to[0] == 1 && to[3] == 2 && to[4] == 1 && to[5] == 2);
  CHECK(ncclReduceScatter(from, to, 2, 2, 0, c, nullptr) == 0 && to[0] == 5 && to[1] == 6 && to[2] == 1);
  CHECK(ncclBroadcast(from, to, 1, 2, 0, c, nullptr) == 0 && to[0] == 5);
  CHECK(ncclBroadcast(from, to, 1, 2, 2, c, nullptr) == 0 && to[0] == 1);
  CHECK(ncclCommDestroy(c) == 0);

  CHECK(ncclCommInitAll(&c, 1, nullptr) == 0 && ncclCommSplit(c, 0, 0, &part, nullptr) == 0 && part != nullptr);
  CHECK(ncclCommDestroy(part) == 0 && ncclCommDestroy(c) == 0);
  CHECK(ncclMemAlloc(&memory, 64) == 0 && memory != nullptr && ncclMemFree(memory) == 0);
}
