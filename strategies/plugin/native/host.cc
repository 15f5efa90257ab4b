// The host: the program in which a plug-in runs. It is compiled on the user's machine.
//
//   host CONTROL PLUGIN ALLOC FREE INIT RESET RECORD FRACTION BASE SHARE ORDINAL STANDINS
//
// CONTROL is a socket. Each instance of the plug-in is a child of this process, forked from it with
// the plug-in loaded and never called; it maps a wire that came over the socket and serves it. This
// process itself only forks, and reports the ends of instances.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <exception>
#include <initializer_list>

#include "standin.h"
#include "wire.h"

namespace {

typedef void *(*alloc_fn)(size_t, int, void *);
typedef void (*free_fn)(void *, size_t, int, void *);
typedef void (*init_fn)(int);
typedef void (*reset_fn)(void);
typedef void (*record_fn)(void *, void *);
typedef void (*fraction_fn)(double, int);
typedef void *(*base_fn)(void *, size_t *);

struct {
  alloc_fn alloc;
  free_fn free;
  init_fn init;
  reset_fn reset;
  record_fn record;
  fraction_fn fraction;
  base_fn base;
} plugin;

struct {
  const char *path, *alloc, *free, *init, *reset, *record, *fraction, *base, *standins;
  double share;
  int ordinal;
} options;

// The message that the host sends once, when the plug-in is loaded or cannot be loaded.
struct greeting {
  uint64_t ready, late, empty_ns;
  char text[1024];
};

// The orders to the host. A fork order carries three files: the shared memory, the eventfd that wakes the
// program, and the file for standard error.
struct order {
  uint32_t op, id;
};
enum { ORDER_FORK = 1, ORDER_KILL = 2 };

struct wire *line;        // shared memory of this instance; null in the host
int waking = -1;          // eventfd that wakes the program
bool loaded, touched;     // the plug-in is loaded; it called the device while loading
uint64_t empty_ns;        // measured time of a call of an empty function
thread_local uint64_t away;  // nanoseconds that this thread waited for the device
pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;

// The number of spins before a thread sleeps. It grows while spinning pays, as in channel_linux.go.
const int few_looks = 16, most_looks = 1000;
thread_local int looks = most_looks;

uint64_t now() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

void pause_a_little() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Waits until *word has changed.
uint32_t await_change(uint32_t *word, uint32_t was, uint32_t *sleeps) {
  for (int i = 0; i < looks; i++) {
    uint32_t is = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if (is != was) {
      looks = 2 * looks < most_looks ? 2 * looks : most_looks;
      return is;
    }
    pause_a_little();
  }
  looks = looks / 2 > few_looks ? looks / 2 : few_looks;
  for (;;) {
    __atomic_store_n(sleeps, 1, __ATOMIC_SEQ_CST);
    uint32_t is = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    if (is != was) {
      __atomic_store_n(sleeps, 0, __ATOMIC_SEQ_CST);
      return is;
    }
    syscall(SYS_futex, word, FUTEX_WAIT, was, nullptr, nullptr, 0);
  }
}

void wake_program() {
  if (__atomic_exchange_n(&line->program_sleeps, 0, __ATOMIC_SEQ_CST) == 0) return;
  uint64_t one = 1;
  while (write(waking, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void say(const char *what) {
  snprintf(line->text, sizeof line->text, "%s", what != nullptr ? what : "no reason is given");
}

// Records the signal that ends the process, then raises it again.
void note_signal(int number, siginfo_t *info, void *) {
  if (line != nullptr && __atomic_load_n(&line->signal, __ATOMIC_SEQ_CST) == 0) {
    line->fault = (number == SIGSEGV || number == SIGBUS) && info->si_code > 0 ? uint64_t(info->si_addr) : 0;
    __atomic_store_n(&line->signal, uint64_t(number), __ATOMIC_SEQ_CST);
  }
  signal(number, SIG_DFL);
  raise(number);
}

void watch_signals() {
  static char stack[64 << 10];
  stack_t s = {};
  s.ss_sp = stack;
  s.ss_size = sizeof stack;
  sigaltstack(&s, nullptr);
  struct sigaction a = {};
  a.sa_sigaction = note_signal;
  a.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) sigaction(number, &a, nullptr);
}

// Returns a function of the plug-in, or null for an empty name.
template <typename F>
bool find(void *handle, const char *name, F *f, char *why, size_t room) {
  if (name[0] == 0) return true;
  *f = reinterpret_cast<F>(dlsym(handle, name));
  if (*f == nullptr) snprintf(why, room, "it has no symbol %s", name);
  return *f != nullptr;
}

// Loads the plug-in. It is never closed: plug-ins start threads and keep contexts.
bool load(char *why, size_t room) {
  void *handle = dlopen(options.path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    snprintf(why, room, "%s", dlerror());
    return false;
  }
  loaded = find(handle, options.alloc, &plugin.alloc, why, room) && find(handle, options.free, &plugin.free, why, room) &&
           find(handle, options.init, &plugin.init, why, room) && find(handle, options.reset, &plugin.reset, why, room) &&
           find(handle, options.record, &plugin.record, why, room) &&
           find(handle, options.fraction, &plugin.fraction, why, room) && find(handle, options.base, &plugin.base, why, room);
  return loaded;
}

// Threads of this process.
int threads() {
  DIR *d = opendir("/proc/self/task");
  if (d == nullptr) return 1;
  int n = 0;
  while (struct dirent *e = readdir(d)) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

// Calls the plug-in and measures the time. It catches every exception.
template <typename F>
void contained(F call) {
  away = 0;
  uint64_t start = now();
  try {
    call();
    line->verdict = VERDICT_RETURNED;
  } catch (const std::exception &e) {
    line->verdict = VERDICT_THREW;
    say(e.what());
  } catch (...) {
    line->verdict = VERDICT_THREW;
    say("something that is no std::exception");
  }
  uint64_t took = now() - start, less = away + empty_ns;
  line->ns = took > less ? took - less : 0;
}

void start() {
  if (!loaded && !load(line->text, sizeof line->text)) {
    line->verdict = VERDICT_UNLOADED;
    return;
  }
  contained([] {
    if (plugin.init != nullptr) plugin.init(int(line->arg[0]));
    if (plugin.fraction != nullptr) plugin.fraction(options.share, options.ordinal);
  });
}

void serve_call() {
  switch (line->call) {
    case CALL_START:
      return start();
    case CALL_ALLOC:
      line->result = 0;
      return contained([] {
        line->result = uint64_t(plugin.alloc(size_t(line->arg[0]), int(line->arg[1]), reinterpret_cast<void *>(line->arg[2])));
      });
    case CALL_FREE:
      return contained([] {
        plugin.free(reinterpret_cast<void *>(line->arg[0]), size_t(line->arg[1]), int(line->arg[2]),
                    reinterpret_cast<void *>(line->arg[3]));
      });
    case CALL_RESET:
      return contained([] { plugin.reset(); });
    case CALL_RECORD:
      return contained([] { plugin.record(reinterpret_cast<void *>(line->arg[0]), reinterpret_cast<void *>(line->arg[1])); });
    case CALL_BASE:
      return contained([] {
        size_t size = size_t(line->arg[1]);
        line->result = uint64_t(plugin.base(reinterpret_cast<void *>(line->arg[0]), &size));
        line->extra = size;
      });
  }
}

[[noreturn]] void serve() {
  watch_signals();
  for (uint32_t done = 0;;) {
    done = await_change(&line->call_asked, done, &line->host_sleeps);
    serve_call();
    __atomic_store_n(&line->call_answered, done, __ATOMIC_SEQ_CST);
    wake_program();
  }
}

// Does nothing, and is opaque to the optimizer.
void *volatile nothing;
void *empty_alloc(size_t, int, void *) { return nothing; }
alloc_fn volatile empty = empty_alloc;

// Measures the overhead of timing: the median over calls of a function that does nothing.
void time_empty() {
  static struct wire scratch;
  static uint64_t took[10001];
  const int n = sizeof took / sizeof took[0];
  line = &scratch;
  for (int i = 0; i < n; i++) {
    contained([] { line->result = uint64_t(empty(size_t(line->arg[0]), int(line->arg[1]), reinterpret_cast<void *>(line->arg[2]))); });
    took[i] = scratch.ns;
  }
  line = nullptr;
  qsort(took, n, sizeof took[0], [](const void *a, const void *b) {
    uint64_t x = *static_cast<const uint64_t *>(a), y = *static_cast<const uint64_t *>(b);
    return (x > y) - (x < y);
  });
  empty_ns = took[n / 2];
}

// The host's record of an instance.
struct instance {
  uint32_t id;
  pid_t pid;
  int waking;
  struct wire *line;
  struct instance *next;
} *instances;

void hush(int output) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, 0);
  dup2(null, 1);
  dup2(output >= 0 ? output : null, 2);
}

// Becomes an instance.
[[noreturn]] void be_instance(struct wire *w, int wakes, int output, int control, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  close(control);
  hush(output);
  close(output);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (struct instance *i = instances; i != nullptr; i = i->next) {
    munmap(i->line, sizeof *i->line); // shared memory of other instances
    close(i->waking);
  }
  waking = wakes;
  line = w;
  serve();
}

// Marks an instance as ended for the program, and removes it.
void bury(struct instance **at, int status) {
  struct instance *i = *at;
  i->line->status = uint64_t(uint32_t(status));
  __atomic_store_n(&i->line->gone, 1, __ATOMIC_SEQ_CST);
  uint64_t one = 1;
  (void)!write(i->waking, &one, sizeof one);
  munmap(i->line, sizeof *i->line);
  close(i->waking);
  *at = i->next;
  free(i);
}

void fork_instance(uint32_t id, int memory, int wakes, int output, int control) {
  void *at = mmap(nullptr, sizeof(struct wire), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  close(memory);
  if (at == MAP_FAILED) _exit(2); // the program notices that the socket is closed
  struct wire *w = static_cast<struct wire *>(at);
  pid_t self = getpid();
  fflush(nullptr);
  pid_t pid = fork();
  if (pid == 0) be_instance(w, wakes, output, control, self);
  close(output);
  struct instance *i = static_cast<struct instance *>(malloc(sizeof *i));
  *i = {id, pid, wakes, w, instances};
  instances = i;
  if (pid < 0) {
    snprintf(w->text, sizeof w->text, "fork: %s", strerror(errno));
    bury(&instances, 0);
  }
}

void bury_dead() {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (struct instance **at = &instances; *at != nullptr; at = &(*at)->next) {
      if ((*at)->pid == pid) {
        bury(at, status);
        break;
      }
    }
  }
}

void kill_instance(uint32_t id) {
  for (struct instance **at = &instances; *at != nullptr; at = &(*at)->next) {
    if ((*at)->id != id) continue;
    int status = 0;
    kill((*at)->pid, SIGKILL);
    while (waitpid((*at)->pid, &status, 0) < 0 && errno == EINTR) {
    }
    bury(at, status);
    return;
  }
}

// Executes one order. It returns false when the socket is closed.
bool obey(int control) {
  struct order o = {};
  struct iovec v = {&o, sizeof o};
  union {
    char room[CMSG_SPACE(3 * sizeof(int))];
    struct cmsghdr align;
  } files;
  struct msghdr m = {};
  m.msg_iov = &v;
  m.msg_iovlen = 1;
  m.msg_control = files.room;
  m.msg_controllen = sizeof files.room;
  ssize_t n = recvmsg(control, &m, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (n != ssize_t(sizeof o)) return false;
  if (o.op == ORDER_KILL) {
    kill_instance(o.id);
    return true;
  }
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  if (o.op != ORDER_FORK || c == nullptr || c->cmsg_len != CMSG_LEN(3 * sizeof(int))) return false;
  int fd[3];
  memcpy(fd, CMSG_DATA(c), sizeof fd);
  fork_instance(o.id, fd[0], fd[1], fd[2], control);
  return true;
}

// Serves the socket until its other end is closed. Instances end with this process.
int serve_orders(int control) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  int ends = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  for (;;) {
    struct pollfd p[2] = {{control, POLLIN, 0}, {ends, POLLIN, 0}};
    if (poll(p, 2, -1) < 0 && errno != EINTR) return 2;
    if (p[1].revents != 0) {
      struct signalfd_siginfo info;
      while (read(ends, &info, sizeof info) > 0) {
      }
      bury_dead();
    }
    if (p[0].revents != 0 && !obey(control)) return 0;
  }
}

// The result of a trial load, in shared memory.
struct trial {
  bool ended, loads, touched;
  int threads;
  char why[1024];
};

// Loads the plug-in in a child process first, to survive a crash, and returns the result.
void try_loading(struct greeting *g, int control) {
  struct trial *t =
      static_cast<struct trial *>(mmap(nullptr, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    t->loads = load(t->why, sizeof t->why);
    t->touched = touched;
    t->threads = threads();
    t->ended = true;
    _exit(0);
  }
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) != pid) {
    struct pollfd p = {control, 0, 0};
    if (poll(&p, 1, 5) > 0) _exit(0); // the program has closed the socket: exit, which ends the trial
  }
  g->late = options.standins[0] == 0 || (t->ended && (t->touched || t->threads > 1));
  g->ready = t->loads || (t->ended && t->touched);
  if (!t->ended && WIFSIGNALED(status)) {
    snprintf(g->text, sizeof g->text, "%s (signal %d) while it was loaded", strsignal(WTERMSIG(status)), WTERMSIG(status));
  } else if (!t->ended) {
    snprintf(g->text, sizeof g->text, "it ended the process with status %d while it was loaded", WEXITSTATUS(status));
  } else {
    memcpy(g->text, t->why, sizeof g->text);
  }
  munmap(t, sizeof *t);
}

// Reserves the addresses of the simulated device, so that no memory of this process is there and a
// plug-in that touches them crashes. If the system refuses, only this protection is lost.
void fence() {
  const uintptr_t base = 0x7f0000000000, end = 0x7ff000000000;
  mmap(reinterpret_cast<void *>(base), end - base, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

// Executes the program again without address randomization, if the system allows it. A plug-in that
// sorts by address or hashes addresses then behaves the same in every run.
void settle(char **argv) {
  int was = personality(0xffffffff);
  if (was == -1 || (was & ADDR_NO_RANDOMIZE) != 0 || personality(was | ADDR_NO_RANDOMIZE) == -1) return;
  if ((personality(0xffffffff) & ADDR_NO_RANDOMIZE) != 0) execv(argv[0], argv);
}

}  // namespace

// Functions for the stand-ins. Every device number stands for the device of the strategy.

API uint64_t vramyard_device(uint64_t op, const uint64_t *arg, uint64_t *result) {
  if (line == nullptr) {
    touched = true;
    return ANSWER_NOBODY;
  }
  uint64_t start = now();
  pthread_mutex_lock(&device_lock);
  line->device = op & 0xffffffff;
  for (int i = 0; i < 4; i++) line->device_arg[i] = arg[i];
  uint32_t asked = line->device_asked + 1;
  __atomic_store_n(&line->device_asked, asked, __ATOMIC_SEQ_CST);
  wake_program();
  await_change(&line->device_answered, asked - 1, &line->device_sleeps);
  for (int i = 0; i < 2; i++) result[i] = line->device_result[i];
  uint64_t verdict = line->device_verdict;
  pthread_mutex_unlock(&device_lock);
  away += now() - start;
  return verdict;
}

API int vramyard_devices(void) { return options.ordinal + 1; }

API int vramyard_first(void) { return options.ordinal; }

API const struct card *vramyard_card(int) {
  static struct card c = {"Vramyard's simulated device", 0, 8, 0, 108, 2048, 32, 49152, 166912, 167936, 65536, 40 << 20, 5120, 1410000, 1215000};
  uint64_t none[4] = {}, info[2] = {};
  if (vramyard_device(DEVICE_INFO, none, info) == ANSWER_DONE) c.memory = info[1];
  return &c;
}

API int *vramyard_current(void) {
  static thread_local int current = -1;
  return &current;
}

API int vramyard_place(const void *p, int *device) {
  uint64_t arg[4] = {uint64_t(uintptr_t(p))}, found[2];
  bool there = vramyard_device(DEVICE_LOOKUP, arg, found) == ANSWER_DONE;
  int chosen = *vramyard_current();
  *device = !there ? -2 : chosen < 0 ? vramyard_first() : chosen;
  return there ? PLACE_DEVICE : PLACE_UNKNOWN;
}

// Device addresses have no memory, so these do nothing.
API void vramyard_pin(const void *, size_t) {}
API void vramyard_unpin(const void *) {}
API void vramyard_copy(void *, const void *, size_t) {}
API void vramyard_fill(void *, uint64_t, int, size_t) {}
API bool vramyard_known(void *, const void *, size_t) { return false; }
API void vramyard_changed(void *, size_t) {}

API void *vramyard_token(void) {
  static uint64_t last = uint64_t(1) << 62;
  return reinterpret_cast<void *>(uintptr_t(__atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST)));
}

API uint64_t vramyard_unsupported(const char *, uint64_t code) { return code; }

int main(int argc, char **argv) {
  if (argc != 13) return 2;
  settle(argv);
  int control = atoi(argv[1]);
  fcntl(control, F_SETFD, FD_CLOEXEC);
  options = {argv[2], argv[3], argv[4], argv[5], argv[6], argv[7], argv[8], argv[9], argv[12], atof(argv[10]), atoi(argv[11])};
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  hush(-1);
  struct greeting g = {};
  if (options.standins[0] != 0) {
    fence();
    char name[4096];
    for (const char *so : {"libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "libcudart.so.11.0"}) {
      snprintf(name, sizeof name, "%s/%s", options.standins, so);
      if (dlopen(name, RTLD_NOW | RTLD_GLOBAL) == nullptr) snprintf(g.text, sizeof g.text, "%s", dlerror());
    }
  }
  if (g.text[0] == 0) {
    try_loading(&g, control);
    if (g.ready && !g.late) g.ready = load(g.text, sizeof g.text);
    time_empty();
    g.empty_ns = empty_ns;
  }
  if (send(control, &g, sizeof g, MSG_NOSIGNAL) != ssize_t(sizeof g) || !g.ready) return 1;
  return serve_orders(control);
}
