// The part of the stand-ins that lives once in the user's program: the connection to the program
// that owns the simulated devices, and the address space that stands for their memory.
//
// Each process connects at its first call to the Unix socket that VRAMYARD_SOCKET names. A call is
// one message of five words, its answer one of three. Events and streams are answered here unless
// the server wants to order them itself.
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <initializer_list>

#include "contents.h"
#include "standin.h"

namespace {

const int most_devices = 64;

// The first message of the server. device/standin/serve.go writes it.
struct hello {
  uint64_t magic;     // of this version of the protocol
  int32_t devices;    // their number
  int32_t lazy;       // the server orders events; otherwise an event is complete at once
  int32_t strict;     // a function that is not modelled ends the program
  int32_t unused;
  uint64_t keep;      // copies up to so many bytes are done
  uint64_t base;      // lowest address of a device in its own numbering
  uint64_t span;      // bytes of address space for one device
};

const uint64_t magic = 0x76726d7964000001;

// The address space of all devices lies below the zone in which the kernel places mappings.
const uint64_t wanted = 0x200000000000;

enum state : int { STATE_NEW, STATE_READY, STATE_LOST };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int state = STATE_NEW;
int line = -1;
bool forked;  // from a process that had used a device
struct hello about;
struct card cards[most_devices];
uint64_t arena;  // address of device 0; 0 without one
uint64_t events;  // number of the last event made here
uint64_t guessed[GUESSED_KINDS];  // calls by kind
thread_local int current = -1;

// Host memory that is pinned: intervals in a list, of which programs have few.
struct pinned {
  uint64_t from, to;
  struct pinned *next;
} *pins;
pthread_mutex_t pins_lock = PTHREAD_MUTEX_INITIALIZER;

// Prints a complaint, and returns false.
bool complain(const char *what) {
  dprintf(2, "vramyard: %s\n", what);
  return false;
}

bool receive(void *to, size_t size) {
  for (char *at = static_cast<char *>(to); size > 0;) {
    ssize_t n = recv(line, at, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, size -= size_t(n);
  }
  return true;
}

bool transmit(const void *from, size_t size) {
  for (const char *at = static_cast<const char *>(from); size > 0;) {
    ssize_t n = send(line, at, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, size -= size_t(n);
  }
  return true;
}

// Reserves the address space of all devices. Nothing can be read or written there: contents.cc keeps
// what is kept.
bool reserve_arena() {
  size_t size = about.span * size_t(about.devices);
  for (uint64_t at : {wanted, uint64_t(0)}) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != 0 ? MAP_FIXED_NOREPLACE : 0);
    void *p = mmap(pointer(at), size, PROT_NONE, flags, -1, 0);
    if (p == MAP_FAILED) continue;
    arena = number(p);
    return true;
  }
  return false;
}

// A fork takes all locks first: the forked process has only the thread that forks, so a lock of
// another thread would never be released. The forked process may free and read tensors, but has no
// device.
void before_fork() {
  pthread_mutex_lock(&lock);
  pthread_mutex_lock(&pins_lock);
  hold_contents();
}

void after_fork() {
  release_contents();
  pthread_mutex_unlock(&pins_lock);
  pthread_mutex_unlock(&lock);
}

void after_fork_in_child() {
  forked = true;
  if (line >= 0) close(line);
  line = -1;
  after_fork();
}

bool connect_to(const char *path) {
  struct sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof name.sun_path) return false;
  strcpy(name.sun_path, path);
  line = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return line >= 0 && connect(line, reinterpret_cast<struct sockaddr *>(&name), sizeof name) == 0;
}

// Connects this process to its devices.
bool start() {
  const char *path = getenv("VRAMYARD_SOCKET");
  if (path == nullptr || !connect_to(path)) return complain("there is no simulated device: start the program by vramyard run");
  uint64_t first[2] = {magic, uint64_t(getpid())};
  if (!transmit(first, sizeof first) || !receive(&about, sizeof about) || about.magic != magic || about.devices < 0 ||
      about.devices > most_devices || !receive(cards, sizeof cards[0] * size_t(about.devices))) {
    return complain("the simulated device speaks another version of the protocol");
  }
  if (about.devices > 0 && !reserve_arena()) return complain("the system gives no address space for the simulated device");
  return true;
}

bool ready() {
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_NEW) {
    pthread_mutex_lock(&lock);
    if (state == STATE_NEW) {
      pthread_atfork(before_fork, after_fork, after_fork_in_child);
      __atomic_store_n(&state, start() ? STATE_READY : STATE_LOST, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
  }
  return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_READY && !forked;
}

uint64_t limit() { return arena + about.span * uint64_t(about.devices); }

bool ours(uint64_t a) { return arena != 0 && a >= arena && a < limit(); }

// The device's own number of an address, and the other way.
uint64_t inward(uint64_t a, uint64_t *device) {
  if (!ours(a)) return a;
  *device = (a - arena) / about.span;
  return about.base + (a - arena) % about.span;
}

uint64_t outward(uint64_t a, uint64_t device) { return arena + device * about.span + (a - about.base); }

uint64_t forward(uint64_t op, uint64_t device, const uint64_t *arg, uint64_t *result) {
  uint64_t question[5] = {op | device << 32, arg[0], arg[1], arg[2], arg[3]}, answer[3] = {};
  pthread_mutex_lock(&lock);
  bool ok = line >= 0 && transmit(question, sizeof question) && receive(answer, sizeof answer);
  if (!ok && line >= 0) {
    complain("the program that owns the simulated device has ended");
    close(line);
    line = -1;
  }
  pthread_mutex_unlock(&lock);
  result[0] = answer[1], result[1] = answer[2];
  return ok ? answer[0] : uint64_t(ANSWER_FAILED);
}

// The function of the program that learns of each copy to the host that has no true contents.
void (*on_read)(void);

void noticed() {
  void (*f)(void) = __atomic_load_n(&on_read, __ATOMIC_ACQUIRE);
  if (f != nullptr) f();
}

}  // namespace

API uint64_t vramyard_device(uint64_t word, const uint64_t *given, uint64_t *result) {
  if (!ready()) return ANSWER_NOBODY;
  uint64_t op = word & 0xffffffff, device = word >> 32, arg[4] = {given[0], given[1], given[2], given[3]};
  switch (op) {
    case DEVICE_NEW_EVENT: case DEVICE_DESTROY_EVENT: case DEVICE_RECORD: case DEVICE_WAIT: case DEVICE_DONE:
    case DEVICE_SYNC_EVENT: case DEVICE_STREAM_DONE:
      if (about.lazy) break;
      result[0] = op == DEVICE_NEW_EVENT ? __atomic_add_fetch(&events, 1, __ATOMIC_SEQ_CST) : 1;
      return ANSWER_DONE;
    case DEVICE_RELEASE: case DEVICE_RELEASE_RANGE: case DEVICE_MAP: case DEVICE_SET_ACCESS: case DEVICE_UNMAP:
    case DEVICE_FREE_ASYNC: case DEVICE_LOOKUP:
      if (!ours(arg[0])) return ANSWER_INVALID;
      arg[0] = inward(arg[0], &device);
      break;
    case DEVICE_RESERVE_RANGE:  // at an address that is wished for, which may be another device's
      uint64_t wished = device;
      arg[2] = inward(arg[2], &wished);
      if (wished != device) arg[2] = 0;
  }
  uint64_t verdict = forward(op, device, arg, result);
  if (verdict != ANSWER_DONE) return verdict;
  switch (op) {
    case DEVICE_RESERVE: case DEVICE_RESERVE_RANGE: case DEVICE_ALLOC_ASYNC: case DEVICE_LOOKUP:
      if (result[0] < about.base || result[0] - about.base >= about.span) {
        complain("the simulated device ran out of addresses");
        return ANSWER_OUT_OF_MEMORY;
      }
      result[0] = outward(result[0], device);
  }
  // New memory has none of the contents that were at its addresses before.
  if (op == DEVICE_RESERVE) forget_contents(result[0], arg[0]);
  if (op == DEVICE_ALLOC_ASYNC) forget_contents(result[0], arg[1]);
  if (op == DEVICE_MAP) forget_contents(given[0], arg[1]);
  return verdict;
}

API int vramyard_devices(void) { return ready() ? about.devices : 0; }

API int vramyard_first(void) { return 0; }

API const struct card *vramyard_card(int device) {
  static const struct card none = {};
  return ready() && device >= 0 && device < about.devices ? &cards[device] : &none;
}

// A handle is aligned as a pointer is: PyTorch marks its own streams by the lowest bit.
API void *vramyard_token(void) {
  static uint64_t last = uint64_t(1) << 62;
  return pointer(__atomic_add_fetch(&last, 16, __ATOMIC_SEQ_CST));
}

API int *vramyard_current(void) { return &current; }

API int vramyard_place(const void *p, int *device) {
  uint64_t a = number(p), at = 0;
  if (ready() && ours(a)) {
    inward(a, &at);
    *device = int(at);
    return PLACE_DEVICE;
  }
  int found = PLACE_UNKNOWN;
  pthread_mutex_lock(&pins_lock);
  for (struct pinned *i = pins; i != nullptr; i = i->next) {
    if (a >= i->from && a < i->to) found = PLACE_HOST;
  }
  pthread_mutex_unlock(&pins_lock);
  *device = found == PLACE_HOST ? 0 : -2;
  return found;
}

API void vramyard_pin(const void *p, size_t size) {
  struct pinned *i = static_cast<struct pinned *>(checked(malloc(sizeof *i)));
  pthread_mutex_lock(&pins_lock);
  *i = {number(p), number(p) + size, pins};
  pins = i;
  pthread_mutex_unlock(&pins_lock);
}

API void vramyard_unpin(const void *p) {
  pthread_mutex_lock(&pins_lock);
  for (struct pinned **at = &pins; *at != nullptr; at = &(*at)->next) {
    if ((*at)->from != number(p)) continue;
    struct pinned *i = *at;
    *at = i->next;
    free(i);
    break;
  }
  pthread_mutex_unlock(&pins_lock);
}

API void vramyard_copy(void *to, const void *from, size_t size) {
  if (size == 0) return;
  bool in = ours(number(to)), out = ours(number(from));
  if (!in && !out) {
    memmove(to, from, size);
  } else if (in && size > about.keep) {
    forget_contents(number(to), size);
  } else if (in && out) {
    copy_contents(number(to), number(from), size);
  } else if (in) {
    write_contents(number(to), from, size);
  } else if (!read_contents(to, number(from), size)) {
    noticed();
  }
}

API bool vramyard_known(void *to, const void *from, size_t size) { return read_contents(to, number(from), size); }

API void vramyard_changed(void *at, size_t size) {
  if (ours(number(at))) expire_contents(number(at), size);
}

API void vramyard_fill(void *to, uint64_t value, int width, size_t size) {
  bool in = ours(number(to));
  if (in && size > about.keep) return forget_contents(number(to), size);
  if (size == 0) return;
  char *text = static_cast<char *>(in ? checked(malloc(size)) : to);
  for (size_t i = 0, n = size_t(width); i < size; i += n) memcpy(text + i, &value, n < size - i ? n : size - i);
  if (!in) return;
  write_contents(number(to), text, size);
  free(text);
}

API void vramyard_guessed(int kind, const void *area, const void *reserve) {
  __atomic_add_fetch(&guessed[kind], 1, __ATOMIC_RELAXED);
  for (const void *a : {area, reserve}) {
    if (a != nullptr) note_area(number(a));
  }
}

// Sets the function that is called, by the thread that copies, after each copy of unknown values to
// the host; null for none.
API void vramyard_watch_reads(void (*f)(void)) { __atomic_store_n(&on_read, f, __ATOMIC_RELEASE); }

// Writes the operators of PyTorch that this thread is in, innermost first, with a space behind each.
// PyTorch calls an operator through a function at::_ops::NAME::call.
API void vramyard_operators(char *text, size_t room) {
  const char prefix[] = "_ZN2at4_ops";
  void *frames[256];
  size_t length = 0;
  int n = backtrace(frames, sizeof frames / sizeof frames[0]);
  for (int i = 0; i < n; i++) {
    Dl_info about;
    if (dladdr(static_cast<char *>(frames[i]) - 1, &about) == 0 || about.dli_sname == nullptr) continue;
    if (strncmp(about.dli_sname, prefix, strlen(prefix)) != 0) continue;
    char *name;
    size_t size = strtoul(about.dli_sname + strlen(prefix), &name, 10);
    if (size > strlen(name) || strncmp(name + size, "4call", 5) != 0 || length + size + 2 > room) continue;
    memcpy(text + length, name, size);
    text[length + size] = ' ';
    length += size + 1;
  }
  text[length] = 0;
}

// Marks how many calls took a guessed work area, and writes a file with these areas.
API void vramyard_report(const char *path) {
  for (uint64_t kind = 0; kind < GUESSED_KINDS; kind++) {
    uint64_t argument[4] = {MARK_GUESSED + kind, __atomic_load_n(&guessed[kind], __ATOMIC_RELAXED)}, result[2];
    if (argument[1] > 0) vramyard_device(DEVICE_MARK, argument, result);
  }
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  write_areas(file);
  close(file);
}

API uint64_t vramyard_unsupported(const char *name, uint64_t code) {
  dprintf(2, "vramyard: %s is not modelled: the call fails\n", name);
  if (ready() && about.strict) _exit(70);
  return code;
}
