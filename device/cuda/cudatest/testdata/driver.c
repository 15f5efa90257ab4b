// A stand-in for the CUDA driver: the functions that device/cuda calls, over memory of the host. It is
// stricter than the driver: what the documentation does not allow is refused and noted as a complaint.
//
// Compiled with -DWITHOUT_VIRTUAL, -DWITHOUT_POOLS or -DWITHOUT_CAPTURE it lacks those functions, as older drivers do. The environment
// says what it is like: STANDIN_GPUS (2), STANDIN_MEMORY in bytes of each (1 GiB), STANDIN_VERSION (12040),
// STANDIN_INIT, an error that cuInit returns, STANDIN_PLAIN_MAPPINGS=1 for one that has neither virtual memory nor
// pools by its attributes; STANDIN_LIE for a card that is broken, always in the same way: "lost-write" (a word that is set
// 256 times or more is not), "granularity" (one is told that is too fine), "overlap" (what is taken after the first
// allocation lies in that), "free" (an allocation above 1 MiB cannot be given back); STANDIN_FAIL=cuMemMap:3:999:2 for one whose
// cuMemMap fails twice with 999, first at its third call.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct context *CUcontext;
typedef struct stream *CUstream;
typedef struct event *CUevent;
typedef struct pool *CUmemoryPool;

enum {
	SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400, NOT_READY = 600, NOT_PERMITTED = 800, NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900, UNKNOWN = 999,
};

static const struct { int code; const char *name, *text; } errors[] = {
	{SUCCESS, "CUDA_SUCCESS", "no error"},
	{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
	{NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	{UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

#define MAX_GPUS 4
#define PAGE ((size_t)2 << 20)

enum kind { ALLOCATION, RANGE, MAPPING, POOLED };

// A span of addresses: what a call gave out.
struct span {
	enum kind kind;
	CUdeviceptr at;
	size_t size;
	int gpu, access;
	uint64_t handle;      // of a mapping
	CUmemoryPool pool;    // of a pooled block
	int live;             // of a pooled block: not freed
	void *real;           // what mmap gave
	size_t real_size;
};

struct handle { size_t size; int gpu, fd, named, maps; };
struct context { int gpu, retained; };
struct stream { uint32_t magic; int gpu; };
struct event { uint32_t magic; int gpu; };
struct pool { uint32_t magic; int gpu, live; size_t max, threshold, reserved, reserved_high, used, used_high; int flags[4]; };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int started, gpus = 2, version = 12040;
static size_t total = (size_t)1 << 30, used[MAX_GPUS];
static struct context contexts[MAX_GPUS];
static struct pool default_pools[MAX_GPUS];
static struct span *spans;
static size_t num_spans, cap_spans;
static struct handle *handles;
static size_t num_handles;
#ifndef WITHOUT_VIRTUAL
static size_t cap_handles;
#endif
static __thread CUcontext stack[16];
static __thread int depth;
static __thread int mode; // of capture: 0 global, 1 of the thread alone, 2 relaxed
static int capturing, lost;

static const char *lie = "";
static int lies(const char *what) { return !strcmp(lie, what); }

static char complaint[512];
static char fail_name[64];
static long fail_nth, fail_code, fail_count = 1;
static struct { char name[48]; long n; } counts[128];

static void complain(const char *format, ...) {
	if (complaint[0]) return;
	va_list args;
	va_start(args, format);
	vsnprintf(complaint, sizeof complaint, format, args);
	va_end(args);
}

// What tests ask for and set.
const char *standin_complaint(void) { return complaint; }
void standin_fail(const char *name, long nth, long code, long count) {
	snprintf(fail_name, sizeof fail_name, "%s", name);
	fail_nth = nth, fail_code = code, fail_count = count;
}
long standin_calls(const char *name) {
	for (int i = 0; i < 128 && counts[i].name[0]; i++)
		if (!strcmp(counts[i].name, name)) return counts[i].n;
	return 0;
}
// A capture in the global mode begins or ends.
void standin_capture(long on) { capturing = (int)on; }
long standin_lost(void) { return lost; }
long standin_mode(void) { return mode; }
// How many spans, handles and retained contexts there are, and how deep the stack of this thread is.
long standin_left(void) {
	long n = depth;
	for (size_t i = 0; i < num_spans; i++) n++;
	for (size_t i = 0; i < num_handles; i++) n += handles[i].named || handles[i].maps;
	for (int i = 0; i < MAX_GPUS; i++) n += contexts[i].retained;
	return n;
}

// Every function begins with ENTER: it counts the call, and refuses it if a test wants that.
static int enter(const char *name) {
	int refused = 0;
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < 128; i++) {
		if (!counts[i].name[0]) snprintf(counts[i].name, sizeof counts[i].name, "%s", name);
		if (!strcmp(counts[i].name, name)) { counts[i].n++; break; }
	}
	if (fail_nth > 0 && !strcmp(fail_name, name) && --fail_nth == 0) {
		if (--fail_count > 0) fail_nth = 1;
		refused = (int)fail_code;
	}
	pthread_mutex_unlock(&mutex);
	return refused;
}
#define ENTER do { int refused = enter(__func__); if (refused) return refused; if (!started) return NOT_INITIALIZED; } while (0)
// UNSAFE stands in functions that may wait for the GPU, which a capture forbids to threads that are not relaxed. What is documented
// is that there are such functions, not which: these are those that allocate, free, copy or ask whether work is done.
#define UNSAFE do { if (capturing && mode != 2) { lost++; return CAPTURE_UNSUPPORTED; } } while (0)
#define CONTEXT int gpu; do { if (!depth) return INVALID_CONTEXT; gpu = stack[depth - 1]->gpu; } while (0)
#define REFUSE(...) do { complain(__VA_ARGS__); return INVALID_VALUE; } while (0)

static struct span *add_span(struct span s) {
	if (num_spans == cap_spans) spans = realloc(spans, (cap_spans = cap_spans ? 2 * cap_spans : 256) * sizeof *spans);
	spans[num_spans] = s;
	return &spans[num_spans++];
}
static void drop_span(struct span *s) { *s = spans[--num_spans]; }
static struct span *find_span(enum kind kind, CUdeviceptr at) {
	for (size_t i = 0; i < num_spans; i++)
		if (spans[i].kind == kind && spans[i].at == at) return &spans[i];
	return NULL;
}
static struct span *span_around(enum kind kind, CUdeviceptr at) {
	for (size_t i = 0; i < num_spans; i++)
		if (spans[i].kind == kind && at >= spans[i].at && at - spans[i].at < spans[i].size) return &spans[i];
	return NULL;
}

CUresult cuInit(unsigned flags) {
	int refused = enter(__func__);
	if (refused) return refused;
	if (flags) REFUSE("cuInit with flags %u", flags);
	const char *v;
	if ((v = getenv("STANDIN_INIT"))) return atoi(v);
	if ((v = getenv("STANDIN_GPUS"))) gpus = atoi(v);
	if ((v = getenv("STANDIN_MEMORY"))) total = strtoull(v, NULL, 10);
	if ((v = getenv("STANDIN_VERSION"))) version = atoi(v);
	if ((v = getenv("STANDIN_LIE"))) lie = v;
	if ((v = getenv("STANDIN_FAIL")) && sscanf(v, "%63[^:]:%ld:%ld:%ld", fail_name, &fail_nth, &fail_code, &fail_count) != 4)
		REFUSE("STANDIN_FAIL=%s", v);
	for (int i = 0; i < MAX_GPUS; i++) {
		contexts[i].gpu = i;
		default_pools[i] = (struct pool){.magic = 0x9001, .gpu = i, .flags = {0, 1, 1, 1}};
	}
	started = 1;
	return SUCCESS;
}
CUresult cuDriverGetVersion(int *v) { ENTER; *v = version; return SUCCESS; }
CUresult cuDeviceGetCount(int *n) { ENTER; *n = gpus; return SUCCESS; }
CUresult cuDeviceGet(CUdevice *d, int i) { ENTER; if (i < 0 || i >= gpus) return INVALID_DEVICE; *d = i; return SUCCESS; }
CUresult cuDeviceGetName(char *name, int n, CUdevice d) { ENTER; snprintf(name, n, "Stand-in %d", d); return SUCCESS; }
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { ENTER; (void)d; *n = total; return SUCCESS; }
CUresult cuDeviceGetAttribute(int *v, int attribute, CUdevice d) {
	ENTER;
	int plain = getenv("STANDIN_PLAIN_MAPPINGS") != NULL;
	switch (attribute) {
	case 16: *v = 132; break;
	case 33: *v = 0x17 + d; break;
	case 34: *v = 0; break;
	case 50: *v = 0; break;
	case 75: *v = 9; break;
	case 76: *v = 0; break;
	case 102: case 115: *v = !plain; break;
	default: return INVALID_VALUE;
	}
	return SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
	ENTER;
	pthread_mutex_lock(&mutex);
	contexts[d].retained++;
	*c = &contexts[d];
	pthread_mutex_unlock(&mutex);
	return SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
	ENTER;
	pthread_mutex_lock(&mutex);
	int was = contexts[d].retained;
	if (was) contexts[d].retained--;
	pthread_mutex_unlock(&mutex);
	return was ? SUCCESS : INVALID_CONTEXT;
}
CUresult cuCtxPushCurrent_v2(CUcontext c) {
	ENTER;
	if (c < contexts || c >= contexts + MAX_GPUS || !c->retained) REFUSE("a context that there is not was pushed");
	if (depth == 16) REFUSE("contexts are pushed and not popped");
	stack[depth++] = c;
	return SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext *c) {
	ENTER;
	if (!depth) return INVALID_CONTEXT;
	if (mode) REFUSE("a thread is left in the mode of capture %d", mode);
	*c = stack[--depth];
	return SUCCESS;
}
#ifndef WITHOUT_CAPTURE
CUresult cuThreadExchangeStreamCaptureMode(int *m) {
	ENTER; CONTEXT;
	(void)gpu;
	if (*m < 0 || *m > 2) REFUSE("cuThreadExchangeStreamCaptureMode(%d)", *m);
	int was = mode;
	mode = *m;
	*m = was;
	return SUCCESS;
}
#endif
CUresult cuGetErrorName(int code, const char **s) {
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code) { *s = errors[i].name; return SUCCESS; }
	*s = NULL;
	return INVALID_VALUE;
}
CUresult cuGetErrorString(int code, const char **s) {
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code) { *s = errors[i].text; return SUCCESS; }
	*s = NULL;
	return INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(size_t *f, size_t *t) { ENTER; CONTEXT; *f = total - used[gpu]; *t = total; return SUCCESS; }

// take maps memory of the host for size bytes, 512 bytes into a page, so that alignments are not got by luck.
static CUresult take(enum kind kind, int gpu, size_t size, CUdeviceptr *at, struct span **made) {
	size_t need = (size + 511) & ~(size_t)511;
	if (need > total - used[gpu]) return OUT_OF_MEMORY;
	void *real = mmap(NULL, need + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (real == MAP_FAILED) return OUT_OF_MEMORY;
	used[gpu] += need;
	*at = (CUdeviceptr)real + 512;
	*made = add_span((struct span){.kind = kind, .at = *at, .size = need, .gpu = gpu, .access = 3, .real = real, .real_size = need + 4096});
	return SUCCESS;
}
static void give(struct span *s) {
	used[s->gpu] -= s->size;
	munmap(s->real, s->real_size);
	drop_span(s);
}
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
	ENTER; UNSAFE; CONTEXT;
	if (!n) REFUSE("cuMemAlloc of no bytes");
	pthread_mutex_lock(&mutex);
	struct span *s;
	for (size_t i = 0; i < num_spans && lies("overlap"); i++)
		if (spans[i].kind == ALLOCATION && spans[i].size >= n) {
			*p = spans[i].at;
			pthread_mutex_unlock(&mutex);
			return SUCCESS;
		}
	CUresult r = take(ALLOCATION, gpu, n, p, &s);
	pthread_mutex_unlock(&mutex);
	return r;
}
CUresult cuMemFree_v2(CUdeviceptr p) {
	ENTER; UNSAFE; CONTEXT;
	pthread_mutex_lock(&mutex);
	struct span *s = find_span(ALLOCATION, p);
	if (s && s->size > 1 << 20 && lies("free")) {
		pthread_mutex_unlock(&mutex);
		return UNKNOWN;
	}
	int ok = s && s->gpu == gpu;
	if (ok) give(s); else complain("cuMemFree of %#llx, which is none of this GPU", (unsigned long long)p);
	pthread_mutex_unlock(&mutex);
	return ok ? SUCCESS : INVALID_VALUE;
}
// inside reports whether n bytes lie in one allocation, mapping or block that may be used so.
static int inside(int gpu, CUdeviceptr p, size_t n, int access) {
	enum kind kinds[] = {ALLOCATION, MAPPING, POOLED};
	pthread_mutex_lock(&mutex);
	int ok = 0;
	for (int k = 0; k < 3 && !ok; k++) {
		struct span *s = span_around(kinds[k], p);
		ok = s && s->gpu == gpu && n <= s->size - (p - s->at) && (s->access & access) == access && (s->kind != POOLED || s->live);
	}
	pthread_mutex_unlock(&mutex);
	if (!ok) complain("%zu bytes at %#llx are accessed and may not be", n, (unsigned long long)p);
	return ok;
}
CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char v, size_t n) {
	ENTER; UNSAFE; CONTEXT;
	if (!inside(gpu, p, n, 3)) return INVALID_VALUE;
	memset((void *)p, v, n);
	return SUCCESS;
}
CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned v, size_t n) {
	ENTER; UNSAFE; CONTEXT;
	if (p % 4) REFUSE("cuMemsetD32 at an odd address");
	if (!inside(gpu, p, 4 * n, 3)) return INVALID_VALUE;
	if (n >= 256 && lies("lost-write")) return SUCCESS;
	for (size_t i = 0; i < n; i++) ((unsigned *)p)[i] = v;
	return SUCCESS;
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr p, size_t n) {
	ENTER; UNSAFE; CONTEXT;
	if (!inside(gpu, p, n, 1)) return INVALID_VALUE;
	memcpy(to, (void *)p, n);
	return SUCCESS;
}

static void settle(struct pool *p) { // down to the threshold: blocks that were freed go
	for (size_t i = num_spans; i-- > 0 && p->reserved > p->threshold;)
		if (spans[i].kind == POOLED && spans[i].pool == p && !spans[i].live) {
			p->reserved -= spans[i].size;
			give(&spans[i]);
			i = num_spans;
		}
}
static void settle_gpu(int gpu) {
	pthread_mutex_lock(&mutex);
	for (size_t i = 0; i < num_spans; i++)
		if (spans[i].kind == POOLED && spans[i].gpu == gpu && !spans[i].live) {
			size_t was = num_spans;
			settle(spans[i].pool);
			if (num_spans != was) i = -1;
		}
	pthread_mutex_unlock(&mutex);
}
CUresult cuCtxSynchronize(void) { ENTER; CONTEXT; settle_gpu(gpu); return SUCCESS; }

static int is_stream(CUstream s, int gpu) { return !s || (s->magic == 0x57e4 && s->gpu == gpu); }
static int is_event(CUevent e, int gpu) { return e && e->magic == 0xe7e47 && e->gpu == gpu; }
CUresult cuStreamCreate(CUstream *s, unsigned flags) {
	ENTER; CONTEXT;
	if (flags != 1) REFUSE("cuStreamCreate with flags %u", flags);
	*s = calloc(1, sizeof **s);
	**s = (struct stream){0x57e4, gpu};
	return SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream s) {
	ENTER; CONTEXT;
	if (!s || !is_stream(s, gpu)) return INVALID_HANDLE;
	s->magic = 0;
	free(s);
	return SUCCESS;
}
CUresult cuStreamSynchronize(CUstream s) { ENTER; CONTEXT; if (!is_stream(s, gpu)) return INVALID_HANDLE; settle_gpu(gpu); return SUCCESS; }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
	ENTER; CONTEXT;
	if (flags) REFUSE("cuStreamWaitEvent with flags %u", flags);
	return is_stream(s, gpu) && is_event(e, gpu) ? SUCCESS : INVALID_HANDLE;
}
CUresult cuEventCreate(CUevent *e, unsigned flags) {
	ENTER; CONTEXT;
	if (flags != 2) REFUSE("cuEventCreate with flags %u", flags);
	*e = calloc(1, sizeof **e);
	**e = (struct event){0xe7e47, gpu};
	return SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent e) {
	ENTER; CONTEXT;
	if (!is_event(e, gpu)) REFUSE("cuEventDestroy of what is no event");
	e->magic = 0;
	free(e);
	return SUCCESS;
}
CUresult cuEventRecord(CUevent e, CUstream s) { ENTER; CONTEXT; return is_event(e, gpu) && is_stream(s, gpu) ? SUCCESS : INVALID_HANDLE; }
CUresult cuEventQuery(CUevent e) { ENTER; UNSAFE; CONTEXT; return is_event(e, gpu) ? SUCCESS : INVALID_HANDLE; }
CUresult cuEventSynchronize(CUevent e) { ENTER; CONTEXT; if (!is_event(e, gpu)) return INVALID_HANDLE; settle_gpu(gpu); return SUCCESS; }

#ifndef WITHOUT_VIRTUAL
typedef struct { int type, id; } location;
typedef struct {
	int type, handle_types;
	location location;
	void *win32;
	struct { unsigned char compression, rdma; unsigned short usage; unsigned char reserved[4]; } flags;
} allocation_prop;
typedef struct { location location; int flags; } access_desc;
_Static_assert(sizeof(allocation_prop) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(access_desc) == 12, "CUmemAccessDesc");

static const char *wrong_prop(const allocation_prop *p) {
	static const unsigned char zero[4];
	if (p->type != 1) return "type";
	if (p->handle_types != 0) return "handle types";
	if (p->location.type != 1 || p->location.id < 0 || p->location.id >= gpus) return "location";
	if (p->win32 || p->flags.compression || p->flags.rdma || p->flags.usage || memcmp(p->flags.reserved, zero, 4)) return "flags";
	return NULL;
}
CUresult cuMemGetAllocationGranularity(size_t *g, const allocation_prop *p, int option) {
	ENTER;
	if (wrong_prop(p) || option) REFUSE("cuMemGetAllocationGranularity: %s, option %d", wrong_prop(p), option);
	*g = lies("granularity") ? PAGE / 32 : PAGE;
	return SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr *p, size_t n, size_t align, CUdeviceptr hint, unsigned long long flags) {
	ENTER;
	if (!n || n % PAGE || flags || align & (align - 1) || hint % PAGE) REFUSE("cuMemAddressReserve(%zu, %zu, %#llx, %llu)", n, align, (unsigned long long)hint, flags);
	if (align < PAGE) align = PAGE;
	if (n > (size_t)1 << 46 || align > (size_t)1 << 46) return OUT_OF_MEMORY;
	size_t need = hint ? n : n + align;
	char *a = mmap((void *)hint, need, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a == MAP_FAILED) return OUT_OF_MEMORY;
	if (hint && (CUdeviceptr)a != hint) { // somebody is there: it comes elsewhere
		munmap(a, n);
		need = n + align;
		a = mmap(NULL, need, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (a == MAP_FAILED) return OUT_OF_MEMORY;
	}
	*p = ((CUdeviceptr)a + align - 1) & ~(CUdeviceptr)(align - 1);
	if (hint && (CUdeviceptr)a == hint) *p = hint;
	// What is not asked for goes back, so that neighbours can be had.
	if (*p > (CUdeviceptr)a) munmap(a, *p - (CUdeviceptr)a);
	if (*p + n < (CUdeviceptr)a + need) munmap((void *)(*p + n), (CUdeviceptr)a + need - *p - n);
	pthread_mutex_lock(&mutex);
	add_span((struct span){.kind = RANGE, .at = *p, .size = n});
	pthread_mutex_unlock(&mutex);
	return SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr p, size_t n) {
	ENTER;
	pthread_mutex_lock(&mutex);
	struct span *s = find_span(RANGE, p);
	int ok = s && s->size == n;
	for (size_t i = 0; ok && i < num_spans; i++) ok = spans[i].kind != MAPPING || spans[i].at < p || spans[i].at >= p + n;
	if (ok) { munmap((void *)p, n); drop_span(find_span(RANGE, p)); }
	else complain("cuMemAddressFree(%#llx, %zu): no such range, or something is mapped", (unsigned long long)p, n);
	pthread_mutex_unlock(&mutex);
	return ok ? SUCCESS : INVALID_VALUE;
}
CUresult cuMemCreate(uint64_t *h, size_t n, const allocation_prop *p, unsigned long long flags) {
	ENTER; UNSAFE;
	if (wrong_prop(p) || flags || !n || n % PAGE) REFUSE("cuMemCreate(%zu): %s", n, wrong_prop(p));
	int gpu = p->location.id;
	pthread_mutex_lock(&mutex);
	int fd = n > total - used[gpu] ? -1 : memfd_create("standin", 0);
	CUresult r = OUT_OF_MEMORY;
	if (fd >= 0 && !ftruncate(fd, n)) {
		if (num_handles == cap_handles) handles = realloc(handles, (cap_handles = cap_handles ? 2 * cap_handles : 256) * sizeof *handles);
		handles[num_handles] = (struct handle){n, gpu, fd, 1, 0};
		*h = 0xabc000000000ull | num_handles++; // more than 32 bits, and never one that was
		used[gpu] += n;
		r = SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return r;
}
static struct handle *handle_of(uint64_t h) {
	uint64_t i = h & 0xffffffffull;
	return (h & ~0xffffffffull) == 0xabc000000000ull && i < num_handles && handles[i].named ? &handles[i] : NULL;
}
static void drop_unused(struct handle *h) {
	if (!h->named && !h->maps) { close(h->fd); used[h->gpu] -= h->size; }
}
CUresult cuMemRelease(uint64_t h) {
	ENTER; UNSAFE;
	pthread_mutex_lock(&mutex);
	struct handle *m = handle_of(h);
	if (m) { m->named = 0; drop_unused(m); } else complain("cuMemRelease of %#llx", (unsigned long long)h);
	pthread_mutex_unlock(&mutex);
	return m ? SUCCESS : INVALID_VALUE;
}
CUresult cuMemMap(CUdeviceptr p, size_t n, size_t offset, uint64_t h, unsigned long long flags) {
	ENTER;
	pthread_mutex_lock(&mutex);
	struct handle *m = handle_of(h);
	struct span *r = span_around(RANGE, p);
	int ok = m && r && !offset && !flags && n && n % PAGE == 0 && p % PAGE == 0 && n <= m->size && n <= r->size - (p - r->at);
	for (size_t i = 0; ok && i < num_spans; i++) ok = spans[i].kind != MAPPING || spans[i].at >= p + n || spans[i].at + spans[i].size <= p;
	if (ok) {
		ok = mmap((void *)p, n, PROT_NONE, MAP_SHARED | MAP_FIXED, m->fd, 0) != MAP_FAILED;
		add_span((struct span){.kind = MAPPING, .at = p, .size = n, .gpu = m->gpu, .handle = h});
		m->maps++;
	} else complain("cuMemMap(%#llx, %zu, %zu, %#llx)", (unsigned long long)p, n, offset, (unsigned long long)h);
	pthread_mutex_unlock(&mutex);
	return ok ? SUCCESS : INVALID_VALUE;
}
CUresult cuMemUnmap(CUdeviceptr p, size_t n) {
	ENTER; UNSAFE;
	pthread_mutex_lock(&mutex);
	struct span *s = find_span(MAPPING, p);
	int ok = s && s->size == n;
	if (ok) {
		mmap((void *)p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		struct handle *m = &handles[s->handle & 0xffffffffull];
		m->maps--;
		drop_unused(m);
		drop_span(s);
	} else complain("cuMemUnmap(%#llx, %zu) is not one whole mapping", (unsigned long long)p, n);
	pthread_mutex_unlock(&mutex);
	return ok ? SUCCESS : INVALID_VALUE;
}
CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const access_desc *d, size_t count) {
	ENTER; UNSAFE;
	static const int protection[] = {PROT_NONE, PROT_READ, PROT_NONE, PROT_READ | PROT_WRITE};
	if (count != 1 || d->location.type != 1 || d->location.id >= gpus || d->flags < 0 || d->flags > 3 || d->flags == 2)
		REFUSE("cuMemSetAccess: count %zu, location %d %d, flags %d", count, d->location.type, d->location.id, d->flags);
	pthread_mutex_lock(&mutex);
	struct span *r = span_around(RANGE, p);
	int ok = r && n && n <= r->size - (p - r->at);
	for (CUdeviceptr at = p; ok && at < p + n;) {
		struct span *s = find_span(MAPPING, at);
		ok = s && s->size <= p + n - at;
		if (ok) at += s->size;
	}
	for (CUdeviceptr at = p; ok && at < p + n;) {
		struct span *s = find_span(MAPPING, at);
		s->access = d->flags;
		mprotect((void *)at, s->size, protection[d->flags]);
		at += s->size;
	}
	if (!ok) complain("cuMemSetAccess(%#llx, %zu) is not whole mappings of one range", (unsigned long long)p, n);
	pthread_mutex_unlock(&mutex);
	return ok ? SUCCESS : INVALID_VALUE;
}
#endif

#ifndef WITHOUT_POOLS
typedef struct {
	int type, handle_types;
	struct { int type, id; } location;
	void *win32;
	size_t max;
	unsigned short usage;
	unsigned char reserved[54];
} pool_props;
_Static_assert(sizeof(pool_props) == 88, "CUmemPoolProps");

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *p, CUdevice d) { ENTER; *p = &default_pools[d]; return SUCCESS; }
CUresult cuMemPoolCreate(CUmemoryPool *p, const pool_props *props) {
	ENTER;
	static const unsigned char zero[54];
	if (props->type != 1 || props->handle_types || props->location.type != 1 || props->location.id < 0 || props->location.id >= gpus ||
	    props->win32 || props->usage || memcmp(props->reserved, zero, 54) || (props->max && version < 12020))
		REFUSE("cuMemPoolCreate: type %d, location %d %d, max %zu", props->type, props->location.type, props->location.id, props->max);
	*p = calloc(1, sizeof **p);
	**p = (struct pool){.magic = 0x9001, .gpu = props->location.id, .max = props->max, .flags = {0, 1, 1, 1}};
	return SUCCESS;
}
static int is_pool(CUmemoryPool p) { return p && p->magic == 0x9001; }
CUresult cuMemPoolDestroy(CUmemoryPool p) {
	ENTER; UNSAFE;
	if (!is_pool(p) || p == &default_pools[p->gpu] || p->live) REFUSE("cuMemPoolDestroy of what is none, or has blocks");
	pthread_mutex_lock(&mutex);
	p->threshold = 0;
	settle(p);
	p->magic = 0;
	free(p);
	pthread_mutex_unlock(&mutex);
	return SUCCESS;
}
CUresult cuMemPoolTrimTo(CUmemoryPool p, size_t keep) {
	ENTER; UNSAFE;
	if (!is_pool(p)) REFUSE("cuMemPoolTrimTo of no pool");
	pthread_mutex_lock(&mutex);
	size_t was = p->threshold;
	p->threshold = keep;
	settle(p);
	p->threshold = was;
	pthread_mutex_unlock(&mutex);
	return SUCCESS;
}
static size_t *figure(CUmemoryPool p, int a) {
	size_t *all[] = {&p->threshold, &p->reserved, &p->reserved_high, &p->used, &p->used_high};
	return a >= 4 && a <= 8 ? all[a - 4] : NULL;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool p, int a, void *v) {
	ENTER;
	if (!is_pool(p)) REFUSE("cuMemPoolGetAttribute of no pool");
	if (a >= 1 && a <= 3) { *(int *)v = p->flags[a]; return SUCCESS; }
	if (!figure(p, a)) REFUSE("cuMemPoolGetAttribute(%d)", a);
	*(uint64_t *)v = *figure(p, a);
	return SUCCESS;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool p, int a, void *v) {
	ENTER;
	if (!is_pool(p)) REFUSE("cuMemPoolSetAttribute of no pool");
	if (a >= 1 && a <= 3) { p->flags[a] = *(int *)v; return SUCCESS; }
	if (a == 4) { p->threshold = *(uint64_t *)v; return SUCCESS; }
	if ((a == 6 || a == 8) && !*(uint64_t *)v) { *figure(p, a) = *figure(p, a - 1); return SUCCESS; }
	REFUSE("cuMemPoolSetAttribute(%d, %llu)", a, (unsigned long long)*(uint64_t *)v);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t n, CUmemoryPool p, CUstream s) {
	ENTER; CONTEXT;
	if (!n || !is_pool(p) || p->gpu != gpu || !is_stream(s, gpu)) REFUSE("cuMemAllocFromPoolAsync(%zu)", n);
	pthread_mutex_lock(&mutex);
	CUresult r = SUCCESS;
	size_t need = (n + 511) & ~(size_t)511;
	struct span *b = NULL;
	for (size_t i = 0; i < num_spans && !b; i++)
		if (spans[i].kind == POOLED && spans[i].pool == p && !spans[i].live && spans[i].size == need) b = &spans[i];
	if (!b && p->max && p->reserved + need > p->max) r = OUT_OF_MEMORY;
	else if (!b && !(r = take(POOLED, gpu, need, at, &b))) {
		b->pool = p;
		p->reserved += need;
		if (p->reserved > p->reserved_high) p->reserved_high = p->reserved;
	}
	if (!r) {
		*at = b->at;
		b->live = 1;
		p->live++;
		p->used += need;
		if (p->used > p->used_high) p->used_high = p->used;
	}
	pthread_mutex_unlock(&mutex);
	return r;
}
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream s) {
	ENTER; CONTEXT;
	pthread_mutex_lock(&mutex);
	struct span *b = find_span(POOLED, at);
	int ok = b && b->live && b->gpu == gpu && is_stream(s, gpu);
	if (ok) { b->live = 0; b->pool->live--; b->pool->used -= b->size; }
	else complain("cuMemFreeAsync of %#llx", (unsigned long long)at);
	pthread_mutex_unlock(&mutex);
	return ok ? SUCCESS : INVALID_VALUE;
}
#endif
