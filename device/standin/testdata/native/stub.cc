// A function that is not modelled says so once.
#define HOST
#include "check.h"
#include "stub.h"

FAILS(notModelled, 7)

int main() {
  for (int i = 0; i < 1000; i++) CHECK(notModelled() == 7);
  CHECK(unsupported == 1);
}
