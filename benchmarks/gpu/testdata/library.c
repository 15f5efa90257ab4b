// A stand-in for libvramyard.so, for tests that cannot wait for the real one to be built: memory of the host, and the statistics that
// the library would write. Nothing is reused, so that memory that was freed can be written without harm. A write to it is
// found at the end, if VRAMYARD_POISON=1 asks for it.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct { unsigned char *at; size_t size; int freed; } blocks[1 << 16];
static size_t count, held;

static int poison(void) { return getenv("VRAMYARD_POISON") && !strcmp(getenv("VRAMYARD_POISON"), "1"); }

static void finish(void) {
	size_t filled = 0, stale = 0;
	for (size_t i = 0; i < count; i++)
		if (blocks[i].freed && poison()) {
			filled++;
			for (size_t j = 0; j < blocks[i].size; j++)
				if (blocks[i].at[j] != 0xe9) { stale++; break; }
		}
	FILE *f = getenv("VRAMYARD_STATS") ? fopen(getenv("VRAMYARD_STATS"), "w") : NULL;
	if (!f) return;
	fprintf(f, "{\"error\":\"\",\"devices\":[{\"allocs\":%zu,\"bad_frees\":0,\"peak_reserved_bytes\":%zu", count, held);
	if (poison()) fprintf(f, ",\"poison\":{\"filled\":%zu,\"compared\":%zu,\"violations\":%zu,\"blind\":false}", filled, filled, stale);
	fprintf(f, "}]}\n");
	fclose(f);
}

void *vramyard_alloc(size_t size, int device, void *stream) {
	(void)device, (void)stream;
	if (!count) atexit(finish);
	if (count == 1 << 16) return NULL;
	held += size;
	blocks[count].at = malloc(size), blocks[count].size = size;
	return blocks[count++].at;
}
void vramyard_free(void *at, size_t size, int device, void *stream) {
	(void)device, (void)stream;
	for (size_t i = count; i-- > 0;)
		if (blocks[i].at == at) {
			blocks[i].freed = 1;
			memset(at, 0xe9, size);
			return;
		}
}
const char *vramyard_stats_json(void) { return "{\"devices\":[{\"allocs\":1,\"peak_reserved_bytes\":1}]}"; }
const char *vramyard_last_error(void) { return ""; }
int vramyard_dump_trace(const char *path) { (void)path; return 0; }
void vramyard_init(int devices) { (void)devices; }
void vramyard_reset(void) {}
void vramyard_memory_fraction(double fraction, int device) { (void)fraction, (void)device; }
void *vramyard_base_alloc(void *at, size_t *size) { (void)size; return at; }
void vramyard_record_stream(void *at, void *stream) { (void)at, (void)stream; }
void vramyard_begin_allocate_to_pool(void) {}
void vramyard_end_allocate_to_pool(void) {}
void vramyard_release_pool(void) {}
