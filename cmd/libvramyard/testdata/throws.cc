// What a program in C++, as PyTorch is, sees of libvramyard.so where something goes wrong.
//
//	throws CASE
#include "../vramyard.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

struct CUstream_st;
using pool_id = std::pair<unsigned long long, unsigned long long>;
extern "C" {
void vramyard_begin_allocate_to_pool(int device, pool_id id, std::function<bool(CUstream_st *)> filter);
void vramyard_end_allocate_to_pool(int device, pool_id id);
void vramyard_release_pool(int device, pool_id id);
}

static void want(bool holds, const char *what) {
  if (holds) return;
  std::printf("not so: %s (last error: %s)\n", what, vramyard_last_error());
  std::exit(1);
}
#define WANT(x) want((x), #x)

static bool says(const char *text, const char *part) {
  if (std::strstr(text, part) != nullptr) return true;
  std::printf("\"%s\" is not in \"%s\"\n", part, text);
  return false;
}

template <typename E, typename F>
static bool throws(F f, const char *part) {
  try {
    f();
  } catch (const E &e) {
    return says(e.what(), part) && says(vramyard_last_error(), part);
  }
  return false;
}

static void *const s1 = reinterpret_cast<void *>(1), *const s2 = reinterpret_cast<void *>(2);

static void oom() {
  void *a = vramyard_alloc(600 << 20, 0, s1);
  WANT(throws<std::bad_alloc>([] { vramyard_alloc(600 << 20, 0, s1); }, "CUDA out of memory. Tried to allocate 600.00 MiB. GPU 0"));
  void *b = nullptr;
  WANT(vramyard_try_alloc(&b, size_t(1) << 63, 0, s1) == 1 && b == nullptr);
  vramyard_free(a, 600 << 20, 0, s1);
  vramyard_reset();
  a = vramyard_alloc(600 << 20, 0, s2);
  vramyard_free(a, 600 << 20, 0, s2);
  vramyard_reset();
  vramyard_memory_fraction(0.5, 0);
  WANT(throws<std::bad_alloc>([] { vramyard_alloc(600 << 20, 0, s1); }, "512.00 MiB are allowed"));
}

static void wrong() {
  const char *part = std::getenv("WANTED");
  for (int i = 0; i < 2; i++) WANT(throws<std::runtime_error>([] { vramyard_alloc(1, 0, nullptr); }, part));
  WANT(throws<std::runtime_error>([] { vramyard_init(1); }, part));
  WANT(says(vramyard_stats_json(), part));
  vramyard_free(s1, 1, 0, nullptr);
}

static void forks() {
  void *a = vramyard_alloc(1000, 0, s1);
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    vramyard_free(a, 1000, 0, s1);
    void *b = nullptr;
    bool fine = throws<std::runtime_error>([] { vramyard_alloc(1000, 0, s1); }, "forked") &&
                throws<std::runtime_error>([&] { vramyard_record_stream(a, s2); }, "forked") &&
                throws<std::runtime_error>([] { vramyard_reset(); }, "forked") && vramyard_try_alloc(&b, 1, 0, s1) == 2;
    std::exit(fine ? 0 : 1);  // what runs at exit must not go to Go either
  }
  int status = 0;
  waitpid(child, &status, 0);
  WANT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  vramyard_free(a, 1000, 0, s1);
  WANT(vramyard_alloc(1000, 0, s1) == a);
}

static void panics() {
  void *a = vramyard_alloc(1000, 0, s1);
  for (int i = 0; i < 3; i++) WANT(throws<std::runtime_error>([] { vramyard_alloc(1000, 0, s1); }, "internal error"));
  vramyard_free(a, 1000, 0, s1);
  WANT(says(vramyard_last_error(), "internal error"));
  WANT(says(vramyard_stats_json(), "internal error"));
}

static void pools() {
  const pool_id id{0, 7};
  auto one = [](CUstream_st *s) { return static_cast<void *>(s) == s1; };
  vramyard_begin_allocate_to_pool(0, id, one);
  void *inside = vramyard_alloc(1000, 0, s1);
  void *outside = vramyard_alloc(1000, 0, s2);
  vramyard_free(inside, 1000, 0, s1);
  vramyard_end_allocate_to_pool(0, id);
  void *later = vramyard_alloc(1000, 0, s1);
  WANT(later != inside);
  vramyard_begin_allocate_to_pool(0, id, one);
  WANT(vramyard_alloc(1000, 0, s1) == inside);
  vramyard_end_allocate_to_pool(0, id);
  vramyard_release_pool(0, id);
  vramyard_release_pool(0, id);
  WANT(throws<std::runtime_error>([&] { vramyard_release_pool(0, id); }, "no such pool"));
  vramyard_free(outside, 1000, 0, s2);
}

static void no_pools() {
  WANT(throws<std::runtime_error>([] { vramyard_begin_allocate_to_pool(0, {0, 1}, [](CUstream_st *) { return true; }); },
                                  "no private pools"));
  vramyard_free(vramyard_alloc(1000, 0, s1), 1000, 0, s1);
}

static void mistakes() {
  WANT(vramyard_alloc(0, 0, s1) == nullptr);
  vramyard_free(nullptr, 0, 0, s1);
  vramyard_record_stream(nullptr, s2);
  char *a = static_cast<char *>(vramyard_alloc(1000, 0, s1));
  WANT(*vramyard_last_error() == 0);
  vramyard_free(a, 1000, 0, s1);
  vramyard_free(a, 1000, 0, s1);
  WANT(says(vramyard_last_error(), "no live block"));
  WANT(throws<std::runtime_error>([&] { vramyard_record_stream(a, s2); }, "no live block"));
  WANT(throws<std::runtime_error>([] { vramyard_memory_fraction(2, 0); }, "want a share"));
  WANT(throws<std::runtime_error>([] { vramyard_alloc(1, 200, s1); }, "device 200"));
  a = static_cast<char *>(vramyard_alloc(1000, 0, s1));
  size_t n = 0;
  char *base = static_cast<char *>(vramyard_base_alloc(a + 5, &n));
  WANT(base <= a && n >= 1000);
  n = 3;
  WANT(vramyard_base_alloc(&n, &n) == &n && n == 3);
  vramyard_init(4);
  WANT(throws<std::runtime_error>([] { vramyard_alloc(1, 4, s1); }, "there are 4"));
  WANT(vramyard_dump_trace(nullptr) == 2 && says(vramyard_last_error(), "VRAMYARD_TRACE"));
  WANT(std::strcmp(vramyard_version(), "0.2.0") == 0);
}

// On the stand-in for the driver, where addresses are memory.
static void poison() {
  auto *a = static_cast<unsigned char *>(vramyard_alloc(4096, 0, nullptr));
  std::memset(a, 1, 4096);
  vramyard_free(a, 4096, 0, nullptr);
  WANT(a[0] != 1 && a[4095] != 1);
  auto *b = static_cast<unsigned char *>(vramyard_alloc(4096, 0, nullptr));
  WANT(a == b && a[0] != 1);
  vramyard_free(b, 4096, 0, nullptr);
  b[100] = 1;
  WANT(throws<std::runtime_error>([] { vramyard_alloc(4096, 0, nullptr); }, "was written after it was freed"));
  vramyard_alloc(4096, 0, nullptr);
}

int main(int argc, char **argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  const std::pair<const char *, void (*)()> cases[] = {
      {"oom", oom}, {"wrong", wrong}, {"fork", forks}, {"panic", panics}, {"pools", pools}, {"no_pools", no_pools},
      {"mistakes", mistakes}, {"poison", poison},
  };
  for (const auto &c : cases) {
    if (which == c.first) {
      c.second();
      std::puts("ok");
      return 0;
    }
  }
  return 2;
}
