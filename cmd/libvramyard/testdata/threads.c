// Threads that allocate, free and share blocks through libvramyard.so, as a program in C sees it.
//
//	threads LIBRARY THREADS STEPS WRITE
//
// With WRITE the addresses are memory: each block is written, and must be as it was written when it is freed.
// It prints what it did, for a test to compare with the statistics and the trace. The streams are those of the CUDA
// driver with WRITE, otherwise numbers.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, HOLDS = 16 };

static void *(*take)(size_t, int, void *);
static void (*give)(void *, size_t, int, void *);
static void (*share)(void *, void *);
static int (*dump)(const char *);

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static struct block { unsigned char *at; size_t size; } live[MOST * HOLDS * 4];
static int blocks, steps, writes, threads;
static void *streams[MOST + 1];
static long allocs, frees, shared, overlaps, misaligned, damaged, empty;

static void *find(void *library, const char *name) {
	void *f = dlsym(library, name);
	if (f == NULL) { puts(dlerror()); exit(2); }
	return f;
}

// enter allocates and puts the block into the table, as one step: it may overlap nothing there.
static struct block enter(size_t size, int id) {
	pthread_mutex_lock(&table);
	struct block b = {take(size, 0, streams[id]), size};
	if (size == 0) {
		empty += b.at == NULL;
	} else {
		allocs++;
		misaligned += (uintptr_t)b.at % 512 != 0;
		for (int i = 0; i < blocks; i++)
			overlaps += b.at < live[i].at + live[i].size && live[i].at < b.at + b.size;
		live[blocks++] = b;
	}
	pthread_mutex_unlock(&table);
	if (writes && size) memset(b.at, id + 1, size);
	return b;
}

static void leave(struct block b, int id, int use) {
	if (writes)
		for (size_t i = 0; i < b.size; i++)
			if (b.at[i] != id + 1) { __sync_fetch_and_add(&damaged, 1); break; }
	pthread_mutex_lock(&table);
	for (int i = 0; i < blocks; i++)
		if (live[i].at == b.at) { live[i] = live[--blocks]; break; }
	if (use) { share(b.at, streams[(id + 1) % threads]); shared++; }
	give(b.at, 1, 0, NULL); // neither size nor stream are reliable in PyTorch
	frees++;
	pthread_mutex_unlock(&table);
}

static void *work(void *arg) {
	int id = (int)(intptr_t)arg;
	uint32_t seed = (uint32_t)id * 7919 + 1;
	struct block mine[HOLDS];
	int n = 0;
	for (int i = 0; i < steps; i++) {
		seed = seed * 1103515245 + 12345;
		uint32_t draw = seed >> 16;
		if (n == HOLDS || (n > 0 && draw % 2)) {
			int k = (int)(draw / 2) % n;
			leave(mine[k], id, draw % 8 == 1 && threads > 1);
			mine[k] = mine[--n];
		} else {
			mine[n] = enter(draw % 100 == 0 ? 0 : (size_t)(draw % 4096) << (draw % 5), id);
			n += mine[n].size > 0;
		}
	}
	while (n > 0) leave(mine[--n], id, 0);
	return NULL;
}

static void crowd(int each) {
	pthread_t t[MOST];
	steps = each;
	for (intptr_t i = 0; i < threads; i++) pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
}

// The streams of the driver, made in the context that the library uses too.
static void make_streams(void) {
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (driver == NULL) { puts(dlerror()); exit(2); }
	void *context = NULL;
	int bad = ((int (*)(unsigned))find(driver, "cuInit"))(0);
	bad |= ((int (*)(void **, int))find(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
	bad |= ((int (*)(void *))find(driver, "cuCtxPushCurrent_v2"))(context);
	for (int i = 0; i < threads; i++) bad |= ((int (*)(void **, unsigned))find(driver, "cuStreamCreate"))(&streams[i], 1);
	if (bad) { printf("driver: %d\n", bad); exit(2); }
}

int main(int argc, char **argv) {
	if (argc != 5) return 2;
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) { puts(dlerror()); return 2; }
	*(void **)&take = find(library, "vramyard_alloc");
	*(void **)&give = find(library, "vramyard_free");
	*(void **)&share = find(library, "vramyard_record_stream");
	*(void **)&dump = find(library, "vramyard_dump_trace");
	threads = atoi(argv[2]);
	writes = atoi(argv[4]);
	if (threads > MOST) return 2;
	for (int i = 0; i < threads; i++) streams[i] = (void *)(intptr_t)(i + 1);
	if (writes) make_streams();
	crowd(atoi(argv[3]));
	for (int i = 0; i < 20; i++) crowd(10); // threads that live for a few calls only
	void *kept = take(12345, 0, streams[0]);
	give(kept, 0, 0, NULL);
	kept = take(54321, 0, streams[0]);
	allocs += 2, frees++;
	give((char *)kept + 512, 0, 0, NULL); // nothing starts there
	printf("{\"allocs\":%ld,\"frees\":%ld,\"shared\":%ld,\"overlaps\":%ld,\"misaligned\":%ld,\"damaged\":%ld,\"empty\":%ld,\"live\":%d}\n",
		allocs, frees, shared, overlaps, misaligned, damaged, empty, blocks + 1);
	return 0;
}
