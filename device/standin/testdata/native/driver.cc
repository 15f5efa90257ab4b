// The driver refuses devices and contexts that do not exist, and sizes that overflow.
#define HOST
#include <initializer_list>

#include "check.h"

extern "C" {
int cuDeviceGetName(char *, int, int);
int cuDeviceTotalMem_v2(size_t *, int);
int cuDeviceGetAttribute(int *, int, int);
int cuDeviceGetDefaultMemPool(void **, int);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuCtxPushCurrent_v2(void *);
int cuCtxPopCurrent_v2(void **);
int cuCtxGetDevice(int *);
int cuMemsetD32_v2(uint64_t, unsigned, size_t);
}

int main() {
  char name[8];
  size_t bytes = 0;
  int value = 0, device = 0;
  void *pool, *context, *first;
  CHECK(cuDeviceTotalMem_v2(&bytes, 3) == SUCCESS && bytes == 1003);
  for (int unknown : {-1, most_test_devices}) {
    CHECK(cuDeviceTotalMem_v2(&bytes, unknown) == INVALID_DEVICE && cuDeviceGetName(name, 8, unknown) == INVALID_DEVICE);
    CHECK(cuDeviceGetAttribute(&value, 1, unknown) == INVALID_DEVICE);
    CHECK(cuDeviceGetDefaultMemPool(&pool, unknown) == INVALID_DEVICE);
    CHECK(cuDevicePrimaryCtxRetain(&context, unknown) == INVALID_DEVICE);
    CHECK(cuCtxSetCurrent(context) == INVALID_CONTEXT && cuCtxPushCurrent_v2(context) == INVALID_CONTEXT);
  }
  CHECK(cuCtxPopCurrent_v2(&context) == INVALID_CONTEXT);
  CHECK(cuDevicePrimaryCtxRetain(&first, 0) == SUCCESS && cuDevicePrimaryCtxRetain(&context, 3) == SUCCESS);
  CHECK(cuCtxSetCurrent(first) == SUCCESS && cuCtxPushCurrent_v2(context) == SUCCESS);
  CHECK(cuCtxGetDevice(&device) == SUCCESS && device == 3);
  CHECK(cuCtxPopCurrent_v2(nullptr) == SUCCESS && cuCtxGetDevice(&device) == SUCCESS && device == 0);

  uint32_t memory[3] = {};
  CHECK(cuMemsetD32_v2(number(memory), 0x01020304, 2) == SUCCESS && memory[1] == 0x01020304 && memory[2] == 0);
  CHECK(cuMemsetD32_v2(number(memory), 0, SIZE_MAX / 4 + 2) == INVALID_VALUE && memory[0] == 0x01020304);
}
