// NCCL: communicators of any number of ranks, each of which computes as if the others had its data.
// Collectives copy the rank's own part, so that checks of equal shapes on all ranks pass.
#include "standin.h"

#ifndef NCCL_VERSION
#define NCCL_VERSION 22105
#endif

namespace {

enum nccl_status : int { NCCL_SUCCESS = 0, NCCL_OUT_OF_MEMORY = 1, NCCL_INVALID_ARGUMENT = 4, NCCL_INVALID_USAGE = 5 };

const int unique_bytes = 128;
const int most_ranks = 1 << 20;
const int no_color = -1;
const int first_operation = 5;  // of those that a program makes

struct unique {
  char bytes[unique_bytes];
};

struct communicator {
  int ranks, rank, device;
};

int communicate(struct communicator **out, int ranks, int rank, int device) {
  *out = nullptr;
  if (ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) return NCCL_INVALID_ARGUMENT;
  *out = static_cast<struct communicator *>(checked(malloc(sizeof **out)));
  **out = {ranks, rank, device};
  return NCCL_SUCCESS;
}

int quit(struct communicator *c) {
  free(c);
  return NCCL_SUCCESS;
}

size_t bytes_of(size_t count, int type) {
  switch (type) {
    case 2: case 3: case 7: return 4 * count;  // int32, uint32, float
    case 4: case 5: case 8: return 8 * count;  // int64, uint64, double
    case 6: case 9: return 2 * count;          // half, bfloat16
  }
  return count;  // int8, uint8 and the types of eight bits
}

int copy(void *to, const void *from, size_t size) {
  if (to != from && size > 0) vramyard_copy(to, from, size);
  return NCCL_SUCCESS;
}

char *offset(void *p, size_t bytes) { return static_cast<char *>(p) + bytes; }

}  // namespace

API int ncclGetVersion(int *version) {
  *version = NCCL_VERSION;
  return NCCL_SUCCESS;
}
API int ncclGetUniqueId(struct unique *out) {
  *out = {"vramyard"};
  return NCCL_SUCCESS;
}
API const char *ncclGetErrorString(int status) {
  return status == NCCL_SUCCESS ? "no error" : "not modelled for simulated devices";
}
API const char *ncclGetLastError(struct communicator *) { return ""; }

// Communicators.

API int ncclCommInitRank(struct communicator **out, int ranks, struct unique, int rank) {
  return communicate(out, ranks, rank, here());
}
API int ncclCommInitRankConfig(struct communicator **out, int ranks, struct unique, int rank, void *) {
  return communicate(out, ranks, rank, here());
}
API int ncclCommInitRankScalable(struct communicator **out, int ranks, int rank, int, struct unique *, void *) {
  return communicate(out, ranks, rank, here());
}
API int ncclCommInitAll(struct communicator **out, int count, const int *devices) {
  int status = NCCL_SUCCESS;
  for (int i = 0; i < count && status == NCCL_SUCCESS; i++) {
    status = communicate(&out[i], count, i, devices != nullptr ? devices[i] : i);
  }
  return status;
}
// The ranks that chose the color are known only if there is one.
API int ncclCommSplit(struct communicator *c, int color, int, struct communicator **out, void *) {
  *out = nullptr;
  if (color == no_color) return NCCL_SUCCESS;
  return c->ranks == 1 ? communicate(out, 1, 0, c->device) : int(NCCL_INVALID_USAGE);
}
API int ncclCommCount(struct communicator *c, int *count) {
  *count = c->ranks;
  return NCCL_SUCCESS;
}
API int ncclCommUserRank(struct communicator *c, int *rank) {
  *rank = c->rank;
  return NCCL_SUCCESS;
}
API int ncclCommCuDevice(struct communicator *c, int *device) {
  *device = c->device;
  return NCCL_SUCCESS;
}
API int ncclCommGetAsyncError(struct communicator *, int *error) {
  *error = NCCL_SUCCESS;
  return NCCL_SUCCESS;
}
API int ncclCommFinalize(struct communicator *) { return NCCL_SUCCESS; }
API int ncclCommDestroy(struct communicator *c) { return quit(c); }
API int ncclCommAbort(struct communicator *c) { return quit(c); }

API int ncclMemAlloc(void **out, size_t size) {
  return reserve(out, size) == SUCCESS ? NCCL_SUCCESS : NCCL_OUT_OF_MEMORY;
}
API int ncclMemFree(void *p) { return give_back(number(p)) == SUCCESS ? NCCL_SUCCESS : NCCL_INVALID_ARGUMENT; }

API int ncclRedOpCreatePreMulSum(int *operation, void *, int, int, struct communicator *) {
  *operation = first_operation;
  return NCCL_SUCCESS;
}

// Collectives.

API int ncclAllReduce(const void *from, void *to, size_t count, int type, int, struct communicator *, void *) {
  return copy(to, from, bytes_of(count, type));
}
API int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct communicator *c, void *) {
  return c->rank == root ? copy(to, from, bytes_of(count, type)) : int(NCCL_SUCCESS);
}
API int ncclReduce(const void *from, void *to, size_t count, int type, int, int root, struct communicator *c, void *) {
  return c->rank == root ? copy(to, from, bytes_of(count, type)) : int(NCCL_SUCCESS);
}
API int ncclReduceScatter(const void *from, void *to, size_t count, int type, int, struct communicator *c, void *) {
  size_t size = bytes_of(count, type);
  return copy(to, offset(const_cast<void *>(from), size * size_t(c->rank)), size);
}
// Each rank's part becomes a copy of this rank's.
API int ncclAllGather(const void *from, void *to, size_t count, int type, struct communicator *c, void *) {
  size_t size = bytes_of(count, type);
  for (int i = 0; i < c->ranks; i++) copy(offset(to, size * size_t(i)), from, size);
  return NCCL_SUCCESS;
}
API int ncclGather(const void *from, void *to, size_t count, int type, int root, struct communicator *c, void *s) {
  return c->rank == root ? ncclAllGather(from, to, count, type, c, s) : int(NCCL_SUCCESS);
}
// What another rank sends is unknown.
API int ncclRecv(void *to, size_t count, int type, int, struct communicator *, void *) {
  vramyard_changed(to, bytes_of(count, type));
  return NCCL_SUCCESS;
}
API int ncclAlltoAll(const void *from, void *to, size_t count, int type, struct communicator *c, void *) {
  return copy(to, from, bytes_of(count, type) * size_t(c->ranks));
}
