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
  char *changed;  // a byte for each, 1 if a kernel changed it later; null if none was
};

// An array that grows; its elements are sorted.
template <typename T>
struct sorted {
  T *all;
  size_t count, room;

  void insert(size_t i, T value) {
    if (count == room) {
      room = room == 0 ? 256 : 2 * room;
      all = static_cast<T *>(checked(realloc(static_cast<void *>(all), room * sizeof(T))));
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

// The address behind size bytes, or the last one.
uint64_t behind(uint64_t at, size_t size) { return size > UINT64_MAX - at ? UINT64_MAX : at + size; }

char *copied(const char *from, size_t size) {
  return static_cast<char *>(memcpy(checked(malloc(size)), from, size));
}

// A copy of the part of an interval from low to high, for an address.
struct interval part_of(const struct interval *k, uint64_t low, uint64_t high, uint64_t at) {
  size_t start = low - k->from, size = high - low;
  bool any = k->changed != nullptr && memchr(k->changed + start, 1, size) != nullptr;
  return {at, at + size, copied(k->data + start, size), any ? copied(k->changed + start, size) : nullptr};
}

void drop(const struct interval *k) {
  free(k->data);
  free(k->changed);
}

// Adds an interval to the others, none of which it overlaps, unless there are too many.
void keep(struct interval k) {
  if (intervals.count >= most_intervals) return drop(&k);
  intervals.insert(after(k.from), k);
}

// Removes what lies in a range. Parts of intervals outside stay.
void cut(uint64_t from, uint64_t to) {
  size_t first = after(from), n = 0, rest = 0;
  struct interval outside[2];
  for (; first + n < intervals.count && intervals.all[first + n].from < to; n++) {
    const struct interval *k = &intervals.all[first + n];
    if (k->from < from) outside[rest++] = part_of(k, k->from, from, k->from);
    if (k->to > to) outside[rest++] = part_of(k, to, k->to, to);
    drop(k);
  }
  if (n == 0) return;
  intervals.remove(first, n);
  for (size_t i = 0; i < rest; i++) keep(outside[i]);
}

// Replaces the contents of a range.
void put(uint64_t at, const char *from, size_t size) {
  size_t i = after(at);
  struct interval *k = &intervals.all[i];
  if (i < intervals.count && k->from <= at && at + size <= k->to) {
    memcpy(k->data + (at - k->from), from, size);
    if (k->changed != nullptr) memset(k->changed + (at - k->from), 0, size);
    return;
  }
  cut(at, at + size);
  keep({at, at + size, copied(from, size), nullptr});
}

// Calls visit(k, low, high) for the part from low to high of each interval k in a range.
template <typename Visit>
void each(uint64_t at, uint64_t end, Visit visit) {
  for (size_t i = after(at); i < intervals.count && intervals.all[i].from < end; i++) {
    struct interval *k = &intervals.all[i];
    visit(k, greater(k->from, at), lesser(k->to, end));
  }
}

}  // namespace

void write_contents(uint64_t at, const void *from, size_t size) {
  if (size == 0) return;
  held lock;
  put(at, static_cast<const char *>(from), size);
}

bool read_contents(void *to, uint64_t at, size_t size) {
  held lock;
  size_t known = 0;
  memset(to, 0, size);
  each(at, behind(at, size), [&](const struct interval *k, uint64_t low, uint64_t high) {
    size_t start = low - k->from, n = high - low;
    memcpy(static_cast<char *>(to) + (low - at), k->data + start, n);
    if (k->changed == nullptr || memchr(k->changed + start, 1, n) == nullptr) known += n;
  });
  return known == size;
}

void copy_contents(uint64_t to, uint64_t at, size_t size) {
  held lock;
  struct sorted<struct interval> parts = {};
  each(at, at + size, [&](const struct interval *k, uint64_t low, uint64_t high) {
    parts.insert(parts.count, part_of(k, low, high, to + (low - at)));
  });
  cut(to, to + size);
  for (size_t i = 0; i < parts.count; i++) keep(parts.all[i]);
  free(parts.all);
}

void expire_contents(uint64_t at, size_t size) {
  held lock;
  size_t next = block_at(at + 1);
  uint64_t end = lesser(behind(at, size), next < blocks.count ? blocks.all[next].at : UINT64_MAX);
  each(at, end, [](struct interval *k, uint64_t low, uint64_t high) {
    if (k->changed == nullptr) k->changed = static_cast<char *>(checked(calloc(k->to - k->from, 1)));
    memset(k->changed + (low - k->from), 1, high - low);
  });
}

void hold_contents() { pthread_mutex_lock(&lock); }
void release_contents() { pthread_mutex_unlock(&lock); }

void forget_contents(uint64_t at, size_t size) {
  held lock;
  cut(at, behind(at, size));
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
