// Contents are kept in disjoint intervals, sorted by address. A block of the program's allocator
// that is freed loses its contents, so that a later block at its address reads as zeros; the program
// says what it allocates and frees. An interval is dropped by a rule that needs no sizes: what lies
// between the start of a freed block and the next live block belonged to the freed one.
#include "contents.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "standin.h"

namespace {

struct interval {
  uint64_t from, to;
  char *data;
  bool stale;  // a kernel changed them later
};

// An array that grows; its elements are sorted.
template <typename T>
struct sorted {
  T *all;
  size_t count, room;

  void insert(size_t i, T value) {
    if (count == room) {
      room = room == 0 ? 256 : 2 * room;
      all = static_cast<T *>(realloc(static_cast<void *>(all), room * sizeof(T)));
    }
    memmove(static_cast<void *>(all + i + 1), all + i, (count - i) * sizeof(T));
    all[i] = value;
    count++;
  }

  void remove(size_t i, size_t n) {
    memmove(static_cast<void *>(all + i), all + i + n, (count - i - n) * sizeof(T));
    count -= n;
  }

  // The first element that is not before a key, by less(element, key).
  template <typename Less>
  size_t first(uint64_t key, Less less) const {
    size_t low = 0, high = count;
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      if (less(all[middle], key)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

// A live block of the program's allocator: its address, and the number of the grant.
struct block {
  uint64_t at, number;
};

struct sorted<struct interval> intervals;
struct sorted<struct block> blocks;
struct sorted<uint64_t> areas;  // numbers of the blocks that were guessed work areas, as they came
uint64_t granted;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct held {
  held() { pthread_mutex_lock(&lock); }
  ~held() { pthread_mutex_unlock(&lock); }
};

// The first interval that ends after an address.
size_t after(uint64_t at) {
  return intervals.first(at, [](const struct interval &i, uint64_t key) { return i.to <= key; });
}

size_t block_at(uint64_t at) {
  return blocks.first(at, [](const struct block &b, uint64_t key) { return b.at < key; });
}

uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }
uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

// Removes what lies in a range. Parts of intervals outside stay.
void cut(uint64_t from, uint64_t to) {
  size_t i = after(from);
  while (i < intervals.count && intervals.all[i].from < to) {
    struct interval k = intervals.all[i];
    intervals.remove(i, 1);
    struct interval before = {k.from, lesser(k.to, from), nullptr, k.stale};
    struct interval behind = {greater(k.from, to), k.to, nullptr, k.stale};
    for (struct interval part : {before, behind}) {
      if (part.from >= part.to) continue;
      size_t size = part.to - part.from;
      part.data = static_cast<char *>(malloc(size));
      memcpy(part.data, k.data + (part.from - k.from), size);
      intervals.insert(i++, part);
    }
    free(k.data);
  }
}

// Replaces the contents of a range.
void put(uint64_t at, const char *from, size_t size, bool stale) {
  size_t i = after(at);
  if (i < intervals.count && intervals.all[i].from <= at && at + size <= intervals.all[i].to && intervals.all[i].stale == stale) {
    memcpy(intervals.all[i].data + (at - intervals.all[i].from), from, size);
    return;
  }
  cut(at, at + size);
  struct interval k = {at, at + size, static_cast<char *>(malloc(size)), stale};
  memcpy(k.data, from, size);
  intervals.insert(after(at), k);
}

// Calls visit(k, low, high) for the part from low to high of each interval k in a range.
template <typename Visit>
void each(uint64_t at, size_t size, Visit visit) {
  for (size_t i = after(at); i < intervals.count && intervals.all[i].from < at + size; i++) {
    struct interval *k = &intervals.all[i];
    visit(k, greater(k->from, at), lesser(k->to, at + size));
  }
}

bool read(void *to, uint64_t at, size_t size) {
  size_t known = 0;
  memset(to, 0, size);
  each(at, size, [&](const struct interval *k, uint64_t low, uint64_t high) {
    memcpy(static_cast<char *>(to) + (low - at), k->data + (low - k->from), high - low);
    if (!k->stale) known += high - low;
  });
  return known == size;
}

}  // namespace

void write_contents(uint64_t at, const void *from, size_t size) {
  if (size == 0) return;
  held lock;
  put(at, static_cast<const char *>(from), size, false);
}

bool read_contents(void *to, uint64_t at, size_t size) {
  held lock;
  return read(to, at, size);
}

void copy_contents(uint64_t to, uint64_t at, size_t size) {
  held lock;
  struct sorted<struct interval> parts = {};
  each(at, size, [&](const struct interval *k, uint64_t low, uint64_t high) {
    struct interval part = {to + (low - at), to + (high - at), static_cast<char *>(malloc(high - low)), k->stale};
    memcpy(part.data, k->data + (low - k->from), high - low);
    parts.insert(parts.count, part);
  });
  cut(to, to + size);
  for (size_t i = 0; i < parts.count; i++) intervals.insert(after(parts.all[i].from), parts.all[i]);
  free(parts.all);
}

void expire_contents(uint64_t at, size_t size) {
  held lock;
  each(at, size, [](struct interval *k, uint64_t, uint64_t) { k->stale = true; });
}

void forget_contents(uint64_t at, size_t size) {
  held lock;
  cut(at, at + size);
}

// The program's allocator granted or freed a block. A pluggable allocator calls these by name.

API void vramyard_granted(uint64_t at) {
  held lock;
  size_t i = block_at(at);
  granted++;
  if (i == blocks.count || blocks.all[i].at != at) {
    blocks.insert(i, {at, granted});
  } else {
    blocks.all[i].number = granted;
  }
}

API void vramyard_freed(uint64_t at) {
  held lock;
  size_t i = block_at(at);
  if (i < blocks.count && blocks.all[i].at == at) blocks.remove(i, 1);
  cut(at, i < blocks.count ? blocks.all[i].at : UINT64_MAX);
}

void note_area(uint64_t at) {
  held lock;
  size_t i = block_at(at);
  if (i < blocks.count && blocks.all[i].at == at) areas.insert(areas.count, blocks.all[i].number);
}

void write_areas(int file) {
  held lock;
  dprintf(file, "%llu\n", (unsigned long long)granted);
  for (size_t i = 0; i < areas.count; i++) dprintf(file, "%llu\n", (unsigned long long)areas.all[i]);
}

namespace {

// PyTorch reports grants and frees to virtual functions of an object. Its own object runs Python, and
// loses an exception that is pending while a tensor is freed. The place of a function in the table
// depends on the release: the first that gets an address of a device is the one for grants, since
// nothing is freed before. The type of the device precedes the address in newer releases.
int grants = -1;

template <int N>
void reported(const void *, uint64_t type, uint64_t at) {
  int device;
  if (vramyard_place(reinterpret_cast<void *>(type), &device) == PLACE_DEVICE) at = type;
  if (vramyard_place(reinterpret_cast<void *>(at), &device) != PLACE_DEVICE) return;
  if (grants < 0) grants = N;
  (N == grants ? vramyard_granted : vramyard_freed)(at);
}

using function = void (*)(const void *, uint64_t, uint64_t);

#define FOUR(n) reported<n>, reported<n + 1>, reported<n + 2>, reported<n + 3>
#define SIXTEEN(n) FOUR(n), FOUR(n + 4), FOUR(n + 8), FOUR(n + 12)
const function functions[] = {SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80)};
const function *const object = functions;

}  // namespace

// The argument of c10::impl::GPUTrace::set_trace.
extern "C" {
__attribute__((visibility("default"))) extern const function *const *const vramyard_tracer;
const function *const *const vramyard_tracer = &object;
}
