// The contents of device memory equal those of an array after any writes, copies and forgettings, and
// are known where nothing unknown was copied to and no kernel changed them.
#define HOST
#include "contents.h"

#include "check.h"

int main() {
  const uint64_t base = 0x200000000000, room = 512;
  unsigned char model[room] = {}, known[room] = {}, text[room], back[room];
  uint32_t state = 1;
  auto next = [&](uint32_t n) { return (state = state * 1664525 + 1013904223) >> 8, (state >> 8) % n; };
  for (int i = 0; i < 5000; i++) {
    uint64_t at = next(room), size = 1 + next(uint32_t(room - at < 64 ? room - at : 64)), to = next(uint32_t(room - size + 1));
    switch (next(4)) {
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
      default:
        CHECK(read_contents(back, base + at, size) == (memchr(known + at, 0, size) == nullptr));
        CHECK(memcmp(back, model + at, size) == 0);
    }
  }
  forget_contents(base, room);
  CHECK(!read_contents(back, base, room));
  for (unsigned char c : back) CHECK(c == 0);
  write_contents(base, model, room);
  expire_contents(base, 1);
  CHECK(!read_contents(back, base, room) && memcmp(back, model, room) == 0);
  copy_contents(base + room, base, room);
  CHECK(!read_contents(back, base + room, room) && memcmp(back, model, room) == 0);
  write_contents(base, model, room);
  CHECK(read_contents(back, base, room) && !read_contents(back, base + 1, room));
  forget_contents(base, 2 * room);
}
