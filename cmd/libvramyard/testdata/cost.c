// What a block costs through libvramyard.so, beside malloc in the same loop:
//
//	cc -O2 -o cost testdata/cost.c -ldl -pthread && VRAMYARD_DEVICE=sim:24GiB VRAMYARD_STRATEGY=tlsf ./cost ./libvramyard.so
//
// Each line is the least of nine rounds, in nanoseconds of the processor for a block: an allocation and a free.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIVE = 256, PAIRS = 100000, ROUNDS = 9 };

static void *(*take)(size_t, int, void *);
static void (*give)(void *, size_t, int, void *);

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *none(size_t n, int device, void *stream) { (void)device, (void)stream; return (void *)n; }
static void nothing(void *p, size_t n, int device, void *stream) { (void)p, (void)n, (void)device, (void)stream; }
static void *plain(size_t n, int device, void *stream) { (void)device, (void)stream; return malloc(n); }
static void plain_free(void *p, size_t n, int device, void *stream) { (void)n, (void)device, (void)stream; free(p); }

static double loop(void) {
	static __thread void *live[LIVE];
	unsigned seed = 1;
	double start = now();
	for (int i = 0; i < PAIRS; i++) {
		seed = seed * 1103515245 + 12345;
		unsigned k = (seed >> 16) % LIVE;
		if (live[k]) give(live[k], 0, 0, NULL);
		live[k] = take(512 * (1 + (seed >> 20) % 512), 0, NULL);
	}
	double spent = (now() - start) / PAIRS;
	for (int k = 0; k < LIVE; k++) {
		if (live[k]) give(live[k], 0, 0, NULL);
		live[k] = NULL;
	}
	return spent;
}

static void *worker(void *out) { *(double *)out = loop(); return NULL; }

static void measure(const char *name, int threads) {
	double best = 1e18;
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t t[8];
		double spent[8], sum = 0;
		for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, worker, &spent[i]);
		for (int i = 0; i < threads; i++) { pthread_join(t[i], NULL); sum += spent[i]; }
		if (sum / threads < best) best = sum / threads;
	}
	printf("%-24s %d thread%s %7.1f ns\n", name, threads, threads > 1 ? "s" : " ", best);
}

int main(int argc, char **argv) {
	void *library = dlopen(argc > 1 ? argv[1] : "./libvramyard.so", RTLD_NOW);
	if (library == NULL) { puts(dlerror()); return 2; }
	take = none, give = nothing;
	measure("a loop without a call", 1);
	take = plain, give = plain_free;
	mallopt(M_MMAP_THRESHOLD, 1 << 30), mallopt(M_TRIM_THRESHOLD, 1 << 30); // no calls to the kernel
	measure("malloc and free", 1);
	*(void **)&take = dlsym(library, "vramyard_alloc");
	*(void **)&give = dlsym(library, "vramyard_free");
	if (take == NULL || give == NULL) return 2;
	for (int threads = 1; threads <= 4; threads *= 2) measure("libvramyard", threads);
	return 0;
}
