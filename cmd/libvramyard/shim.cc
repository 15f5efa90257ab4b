//go:build cgo && linux

// The border between C++ and Go. The Go functions return a status and a text. The functions here turn them into
// exceptions, the only form in which PyTorch accepts an out-of-memory error. Neither a panic nor an exception
// crosses the border. A child of fork does not call Go at all, because the threads of Go's runtime do not exist
// in it.

#include "torch_error.h"
#include "vramyard.h"

#include <cxxabi.h>
#include <dlfcn.h>
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

// Functions of the stand-ins for CUDA (device/standin): a block was granted, or freed, which loses its contents. Null on
// a GPU.
__attribute__((weak)) void vramyard_granted(uint64_t at);
__attribute__((weak)) void vramyard_freed(uint64_t at);
}

namespace {

enum status { ok = 0, no_memory = 1, failed = 2 };

constexpr size_t room = 2048;  // bytes of an error text with its terminating null

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

// thread_texts are the texts returned to one thread. They are not thread_local variables: the libraries that are
// loaded by dlopen share a small static area for these, and Go's runtime needs some of it.
struct thread_texts {
  char error[room] = "";  // returned by vramyard_last_error
  std::string result;     // returned by vramyard_stats_json and vramyard_version
};

struct texts_key {
  pthread_key_t key;
  texts_key() { pthread_key_create(&key, [](void *t) { delete static_cast<thread_texts *>(t); }); }
} const thread_key;

thread_texts &texts_of_thread() {
  auto *t = static_cast<thread_texts *>(pthread_getspecific(thread_key.key));
  if (t == nullptr) {
    t = new thread_texts;
    pthread_setspecific(thread_key.key, t);
  }
  return *t;
}

const char *const child_error =
    "vramyard: this process was forked after libvramyard.so was loaded, and cannot use it: start workers with spawn or "
    "forkserver, or before the library is loaded";

// fork_guard detects a child of fork. The kernel clears its page in every child, however it was forked. If the
// kernel cannot do that, the process ID is compared.
struct fork_guard {
  volatile unsigned char *page = nullptr;
  pid_t pid = getpid();

  fork_guard() {
    void *p = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED && madvise(p, 4096, MADV_WIPEONFORK) == 0) {
      page = static_cast<volatile unsigned char *>(p);
      *page = 1;
    }
  }
  bool in_child() const { return page != nullptr ? *page == 0 : getpid() != pid; }
} const guard;

// record_error keeps the text of an error for vramyard_last_error and returns the status.
int record_error(int s, const char *text) {
  if (s != ok) std::snprintf(texts_of_thread().error, room, "%s", text);
  return s;
}

// throw_torch_error throws PyTorch's own out-of-memory error. It returns if the process has no PyTorch, or a release
// with another class.
void throw_torch_error(const char *text) {
  void *torch = dlopen("libc10_cuda.so", RTLD_NOW | RTLD_NOLOAD);  // symbols are also looked up in libc10.so
  if (torch == nullptr) return;
  auto *type = static_cast<std::type_info *>(dlsym(torch, "_ZTIN3c1016OutOfMemoryErrorE"));
  auto *table = static_cast<void **>(dlsym(torch, "_ZTVN3c1016OutOfMemoryErrorE"));
  void *make = dlsym(torch, "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  void *make_old = dlsym(torch, "_ZN3c105ErrorC2ENS_14SourceLocationESs");
  dlclose(torch);  // it stays loaded
  if (type == nullptr || table == nullptr || (make == nullptr && make_old == nullptr)) return;
  constexpr size_t size = 1024;  // more than the object has in any release
  void *object = abi::__cxa_allocate_exception(size);
  if (make != nullptr) {
    construct_error<std::string>(make, object, text);
  } else {
    construct_error_old(make_old, object, text);
  }
  // The class adds nothing to c10::Error but its type. The functions of a table begin behind two words, and the
  // destructor is the first of them.
  *static_cast<void ***>(object) = table + 2;
  abi::__cxa_throw(object, type, reinterpret_cast<void (*)(void *)>(table[2]));
}

// checked throws the error that Go returned, if any.
void checked(int s, const char *text) {
  if (record_error(s, text) == ok) return;
  if (s == no_memory) {
    throw_torch_error(text);
    throw out_of_memory(text);
  }
  throw error(text);
}

// refuse_child throws in a child of fork.
void refuse_child() {
  if (guard.in_child()) checked(failed, child_error);
}

// finish writes the trace and the statistics when the process exits. It is registered at the first allocation, so
// that it runs before the driver's own exit handler.
void finish() {
  if (guard.in_child()) return;
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

// The private pools that are open. Only the filter, a function of PyTorch, decides which requests belong to a pool.
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
  refuse_child();
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
  refuse_child();
  char text[room];
  void *out;
  checked(try_alloc(&out, size, device, stream, text), text);
  if (vramyard_granted != nullptr && out != nullptr) vramyard_granted(reinterpret_cast<uintptr_t>(out));
  return out;
}

int vramyard_try_alloc(void **out, size_t size, int device, void *stream) {
  *out = nullptr;
  if (guard.in_child()) return record_error(failed, child_error);
  char text[room] = "";
  try {
    return record_error(try_alloc(out, size, device, stream, text), text);
  } catch (const std::exception &e) {  // thrown by a pool filter of PyTorch
    return record_error(failed, e.what());
  }
}

void vramyard_free(void *ptr, size_t, int device, void *) {
  if (ptr == nullptr || guard.in_child()) return;
  if (vramyard_freed != nullptr) vramyard_freed(reinterpret_cast<uintptr_t>(ptr));
  char text[room];
  record_error(vramyardGoFree(reinterpret_cast<uintptr_t>(ptr), device, text, room), text);
}

void vramyard_init(int device_count) {
  refuse_child();
  char text[room];
  checked(vramyardGoInit(device_count, text, room), text);
}

void vramyard_reset(void) {
  refuse_child();
  char text[room];
  checked(vramyardGoReset(text, room), text);
}

void vramyard_memory_fraction(double fraction, int device) {
  refuse_child();
  char text[room];
  checked(vramyardGoFraction(fraction, device, text, room), text);
}

void *vramyard_base_alloc(void *ptr, size_t *size) {
  refuse_child();
  uintptr_t start = 0;
  size_t n = 0;
  if (vramyardGoBase(reinterpret_cast<uintptr_t>(ptr), &start, &n) != ok) return ptr;
  if (size != nullptr) *size = n;
  return reinterpret_cast<void *>(start);
}

void vramyard_record_stream(void *ptr, void *stream) {
  if (ptr == nullptr) return;
  refuse_child();
  char text[room];
  checked(vramyardGoRecordStream(reinterpret_cast<uintptr_t>(ptr), reinterpret_cast<uintptr_t>(stream), text, room), text);
}

// The functions of private pools have the C++ types that PyTorch calls them with.

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
  if (guard.in_child()) return "{}";
  std::string &text = texts_of_thread().result;
  for (size_t n = 4096;;) {
    text.resize(n);
    const size_t need = vramyardGoStats(&text[0], n);
    if (need <= n) {
      text.resize(need);
      return text.c_str();
    }
    n = need + 1024;  // the statistics may grow before the next try
  }
}

int vramyard_dump_trace(const char *path) {
  if (guard.in_child()) return record_error(failed, child_error);
  char text[room];
  return record_error(vramyardGoDumpTrace(const_cast<char *>(path == nullptr ? "" : path), text, room), text);
}

const char *vramyard_version(void) {
  if (guard.in_child()) return "";
  std::string &text = texts_of_thread().result;
  text.resize(64);
  text.resize(vramyardGoVersion(&text[0], text.size()));
  return text.c_str();
}

const char *vramyard_last_error(void) { return texts_of_thread().error; }

}  // extern "C"
