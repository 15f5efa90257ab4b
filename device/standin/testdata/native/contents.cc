// The contents of device memory equal those of an array after any writes, copies and forgettings, and
// are known where nothing unknown was copied to and no kernel changed them.
#define HOST
#include "contents.h"

#include <initializer_list>

#include "check.h"

extern "C" {
void vramyard_granted(uint64_t);
void vramyard_freed(uint64_t);
}

namespace {

const uint64_t base = 0x200000000000, room = 512;

// Does what may happen, in any order.
void equal_an_array() {
  unsigned char model[room] = {}, known[room] = {}, text[room], back[room];
  uint32_t state = 1;
  auto next = [&](uint32_t n) { return (state = state * 1664525 + 1013904223) >> 8, (state >> 8) % n; };
  for (int i = 0; i < 5000; i++) {
    uint64_t at = next(room), size = 1 + next(uint32_t(room - at < 64 ? room - at : 64)), to = next(uint32_t(room - size + 1));
    switch (next(5)) {
      case 0:
        for (uint64_t k = 0; k < size; k++) text[k] = model[at + k] = static_cast<unsigned char>(next(256));
        memset(known + at, 1, size);
        write_contents(base + at, text, size);
        break;
      case 1:
        memset(model + at, 0, size);
        memset(known + at, 0, size);
        forget_contents(base + at, size);
        break;
      case 2:
        memmove(model + to, model + at, size);
        memmove(known + to, known + at, size);
        copy_contents(base + to, base + at, size);
        break;
      case 3:
        memset(known + at, 0, size);
        expire_contents(base + at, size);
        break;
      default:
        CHECK(read_contents(back, base + at, size) == (memchr(known + at, 0, size) == nullptr));
        CHECK(memcmp(back, model + at, size) == 0);
    }
  }
  forget_contents(base, room);
  CHECK(!read_contents(back, base, room));
  for (unsigned char c : back) CHECK(c == 0);
}

// A kernel that changes a slice leaves the rest of an upload known, in copies too, and the next block.
void slices_expire() {
  unsigned char upload[room], back[room];
  for (uint64_t i = 0; i < room; i++) upload[i] = static_cast<unsigned char>(i);
  write_contents(base, upload, room);
  expire_contents(base + 100, 8);
  copy_contents(base + room, base, room);
  for (uint64_t at : {base, base + room}) {
    CHECK(!read_contents(back, at, room) && memcmp(back, upload, room) == 0);
    CHECK(read_contents(back, at, 100) && read_contents(back, at + 108, room - 108));
    CHECK(!read_contents(back, at + 99, 2) && !read_contents(back, at + 107, 2));
  }
  write_contents(base + 100, upload, 4);
  CHECK(read_contents(back, base, 104) && !read_contents(back, base, 105) && back[100] == 0);
  write_contents(base, upload, room);
  forget_contents(base + room, room);
  CHECK(read_contents(back, base, room) && !read_contents(back, base + 1, room));
  vramyard_granted(base);
  vramyard_granted(base + 256);
  expire_contents(base + 200, UINT64_MAX);
  CHECK(!read_contents(back, base + 255, 1) && read_contents(back, base + 256, 256));
  vramyard_freed(base);
  CHECK(!read_contents(back, base, 1) && back[0] == 0 && read_contents(back, base + 256, 256));
  vramyard_freed(base + 256);
}

// Contents beyond the bound are not kept.
void too_many() {
  char byte = 7;
  for (uint64_t i = 0; i <= most_intervals; i++) write_contents(base + 2 * i, &byte, 1);
  CHECK(read_contents(&byte, base + 2 * (most_intervals - 1), 1) && byte == 7);
  CHECK(!read_contents(&byte, base + 2 * most_intervals, 1) && byte == 0);
  forget_contents(base, 2 * most_intervals);
}

}  // namespace

int main() {
  equal_an_array();
  slices_expire();
  too_many();
}
