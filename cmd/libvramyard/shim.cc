//go:build cgo && linux

// The border between C++ and Go. Go answers a status and a text; here they become exceptions, because nothing
// else tells PyTorch that there is no memory. Neither a panic nor an exception crosses. In a child of fork
// nothing goes to Go at all: its runtime has threads, which are not there any more.

#include "vramyard.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct CUstream_st;

extern "C" {
int vramyardGoAlloc(uintptr_t *out, size_t size, int device, uintptr_t stream, uint64_t pool, char *text, size_t room);
int vramyardGoFree(uintptr_t ptr, int device, char *text, size_t room);
int vramyardGoInit(int devices, char *text, size_t room);
int vramyardGoReset(char *text, size_t room);
int vramyardGoFraction(double fraction, int device, char *text, size_t room);
int vramyardGoBase(uintptr_t ptr, uintptr_t *start, size_t *size);
int vramyardGoRecordStream(uintptr_t ptr, uintptr_t stream, char *text, size_t room);
int vramyardGoPool(int what, int device, uint64_t first, uint64_t second, uint64_t *pool, char *text, size_t room);
int vramyardGoDumpTrace(char *path, char *text, size_t room);
int vramyardGoFinish(char *text, size_t room);
size_t vramyardGoStats(char *text, size_t room);
size_t vramyardGoVersion(char *text, size_t room);
}

namespace {

enum status { ok = 0, no_memory = 1, failed = 2 };

constexpr size_t room = 2048;  // for the text of an error, and the null behind it

class out_of_memory : public std::bad_alloc {
 public:
  explicit out_of_memory(std::string text) : text_(std::move(text)) {}
  const char *what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// words are what a thread was told. They are no thread_local variables: a library that is loaded late gets
// few bytes of those, all libraries together, and Go's runtime wants some.
struct words {
  char error[room] = "";
  std::string text;
};

struct words_key {
  pthread_key_t key;
  words_key() { pthread_key_create(&key, [](void *w) { delete static_cast<words *>(w); }); }
} const of_thread;

words &mine() {
  auto *w = static_cast<words *>(pthread_getspecific(of_thread.key));
  if (w == nullptr) {
    w = new words;
    pthread_setspecific(of_thread.key, w);
  }
  return *w;
}

const char *const in_child =
    "vramyard: this process was forked after libvramyard.so was loaded, and cannot use it: start workers with spawn or "
    "forkserver, or before the library is loaded";

// home tells a child of fork from the process that loaded the library. The page is empty in the child,
// whoever called fork and however; where the kernel cannot do that the number of the process has to do.
struct home {
  volatile unsigned char *page = nullptr;
  pid_t pid = getpid();

  home() {
    void *p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED && madvise(p, 4096, MADV_WIPEONFORK) == 0) {
      page = static_cast<volatile unsigned char *>(p);
      *page = 1;
    }
  }
  bool left() const { return page != nullptr ? *page == 0 : getpid() != pid; }
} const here;

int told(int s, const char *text) {
  if (s != ok) std::snprintf(mine().error, room, "%s", text);
  return s;
}

// checked throws what Go answered, if that is no success.
void checked(int s, const char *text) {
  if (told(s, text) == ok) return;
  if (s == no_memory) throw out_of_memory(text);
  throw error(text);
}

void at_home() {
  if (here.left()) checked(failed, in_child);
}

// finish writes what the environment asks for at the end. It is registered with the first block, so that
// it runs before the driver is taken down.
void finish() {
  if (here.left()) return;
  char text[room] = "";
  if (vramyardGoFinish(text, room) != ok) std::fprintf(stderr, "%s\n", text);
}

std::once_flag finish_registered;

using pool_id = std::pair<unsigned long long, unsigned long long>;
using pool_filter = std::function<bool(CUstream_st *)>;

struct open_pool {
  int device;
  pool_id id;
  uint64_t number;
  pool_filter filter;
};

// Pools that are open now. Which requests go there only PyTorch knows.
std::shared_mutex pools_mutex;
std::vector<open_pool> pools;
std::atomic<size_t> pools_open{0};

uint64_t pool_of(int device, void *stream) {
  if (pools_open.load(std::memory_order_acquire) == 0) return 0;
  std::shared_lock<std::shared_mutex> lock(pools_mutex);
  for (const open_pool &p : pools)
    if (p.device == device && p.filter && p.filter(static_cast<CUstream_st *>(stream))) return p.number;
  return 0;
}

enum pool_step { pool_begin, pool_end, pool_release };

uint64_t pool_call(pool_step what, int device, const pool_id &id) {
  at_home();
  char text[room] = "";
  uint64_t number = 0;
  checked(vramyardGoPool(what, device, id.first, id.second, &number, text, room), text);
  return number;
}

int try_alloc(void **out, size_t size, int device, void *stream, char *text) {
  uintptr_t ptr = 0;
  *out = nullptr;
  if (size == 0) return ok;
  std::call_once(finish_registered, [] { std::atexit(finish); });
  const int s = vramyardGoAlloc(&ptr, size, device, reinterpret_cast<uintptr_t>(stream), pool_of(device, stream), text, room);
  *out = reinterpret_cast<void *>(ptr);
  return s;
}

}  // namespace

extern "C" {

void *vramyard_alloc(size_t size, int device, void *stream) {
  at_home();
  char text[room];
  void *out;
  checked(try_alloc(&out, size, device, stream, text), text);
  return out;
}

int vramyard_try_alloc(void **out, size_t size, int device, void *stream) {
  *out = nullptr;
  if (here.left()) return told(failed, in_child);
  char text[room] = "";
  try {
    return told(try_alloc(out, size, device, stream, text), text);
  } catch (const std::exception &e) {  // of a filter of PyTorch
    return told(failed, e.what());
  }
}

void vramyard_free(void *ptr, size_t, int device, void *) {
  if (ptr == nullptr || here.left()) return;
  char text[room];
  told(vramyardGoFree(reinterpret_cast<uintptr_t>(ptr), device, text, room), text);
}

void vramyard_init(int device_count) {
  at_home();
  char text[room];
  checked(vramyardGoInit(device_count, text, room), text);
}

void vramyard_reset(void) {
  at_home();
  char text[room];
  checked(vramyardGoReset(text, room), text);
}

void vramyard_memory_fraction(double fraction, int device) {
  at_home();
  char text[room];
  checked(vramyardGoFraction(fraction, device, text, room), text);
}

void *vramyard_base_alloc(void *ptr, size_t *size) {
  at_home();
  uintptr_t start = 0;
  size_t n = 0;
  if (vramyardGoBase(reinterpret_cast<uintptr_t>(ptr), &start, &n) != ok) return ptr;
  if (size != nullptr) *size = n;
  return reinterpret_cast<void *>(start);
}

void vramyard_record_stream(void *ptr, void *stream) {
  if (ptr == nullptr) return;
  at_home();
  char text[room];
  checked(vramyardGoRecordStream(reinterpret_cast<uintptr_t>(ptr), reinterpret_cast<uintptr_t>(stream), text, room), text);
}

// The three functions of private pools have the types that PyTorch calls them with.

void vramyard_begin_allocate_to_pool(int device, pool_id id, pool_filter filter) {
  const uint64_t number = pool_call(pool_begin, device, id);
  std::unique_lock<std::shared_mutex> lock(pools_mutex);
  pools.push_back({device, id, number, std::move(filter)});
  pools_open.store(pools.size(), std::memory_order_release);
}

void vramyard_end_allocate_to_pool(int device, pool_id id) {
  {
    std::unique_lock<std::shared_mutex> lock(pools_mutex);
    for (size_t i = 0; i < pools.size(); i++) {
      if (pools[i].device == device && pools[i].id == id) {
        pools.erase(pools.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
    }
    pools_open.store(pools.size(), std::memory_order_release);
  }
  pool_call(pool_end, device, id);
}

void vramyard_release_pool(int device, pool_id id) { pool_call(pool_release, device, id); }

const char *vramyard_stats_json(void) {
  if (here.left()) return "{}";
  std::string &text = mine().text;
  for (size_t n = 4096;;) {
    text.resize(n);
    const size_t need = vramyardGoStats(&text[0], n);
    if (need <= n) {
      text.resize(need);
      return text.c_str();
    }
    n = need + 1024;  // they may grow meanwhile
  }
}

int vramyard_dump_trace(const char *path) {
  if (here.left()) return told(failed, in_child);
  char text[room];
  return told(vramyardGoDumpTrace(const_cast<char *>(path == nullptr ? "" : path), text, room), text);
}

const char *vramyard_version(void) {
  if (here.left()) return "";
  std::string &text = mine().text;
  text.resize(64);
  text.resize(vramyardGoVersion(&text[0], text.size()));
  return text.c_str();
}

const char *vramyard_last_error(void) { return mine().error; }

}  // extern "C"
