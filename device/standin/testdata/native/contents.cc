// The contents of device memory equal those of an array after any writes and forgettings.
#define HOST
#include "contents.h"

#include "check.h"

int main() {
  const uint64_t base = 0x200000000000, room = 512;
  unsigned char model[room] = {}, text[room], back[room];
  uint32_t state = 1;
  auto next = [&](uint32_t n) { return (state = state * 1664525 + 1013904223) >> 8, (state >> 8) % n; };
  for (int i = 0; i < 5000; i++) {
    uint64_t at = next(room), size = 1 + next(uint32_t(room - at < 64 ? room - at : 64));
    switch (next(3)) {
      case 0:
        for (uint64_t k = 0; k < size; k++) text[k] = model[at + k] = static_cast<unsigned char>(next(256));
        write_contents(base + at, text, size);
        break;
      case 1:
        memset(model + at, 0, size);
        forget_contents(base + at, size);
        break;
      default:
        read_contents(back, base + at, size);
        CHECK(memcmp(back, model + at, size) == 0);
    }
  }
  forget_contents(base, room);
  read_contents(back, base, room);
  for (unsigned char c : back) CHECK(c == 0);
}
