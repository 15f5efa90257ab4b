// The contents of device memory that a program wrote itself, by copies and fills of moderate size.
// Everything else reads as zeros.
#ifndef VRAMYARD_CONTENTS_H
#define VRAMYARD_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

// Contents are kept in at most so many intervals. Beyond that, new ones are not kept: they read as
// zeros and are unknown. An interval is what one copy or fill wrote, as far as it was not overwritten.
const size_t most_intervals = 1 << 18;

// Each function is O(log n) of n intervals with contents, plus the bytes. A new interval before others
// moves these.

void write_contents(uint64_t at, const void *from, size_t size);
void forget_contents(uint64_t at, size_t size);

// Reports whether all bytes have contents that no kernel changed later.
bool read_contents(void *to, uint64_t at, size_t size);

// Copies contents within the device. Bytes without contents have none in the copy.
void copy_contents(uint64_t to, uint64_t from, size_t size);

// The block at an address is a work area whose size is a guess.
void note_area(uint64_t at);

// Writes the number of blocks that the allocator granted, and which of them were such areas, counted
// from 1, as lines.
void write_areas(int file);

// A kernel changed these bytes of one block: they are unknown, and keep the contents from before.
void expire_contents(uint64_t at, size_t size);

// While one thread forks, no other one may be in these functions.
void hold_contents();
void release_contents();

#endif
