// The contents of device memory that a program wrote itself, by copies and fills of moderate size.
// Everything else reads as zeros.
#ifndef VRAMYARD_CONTENTS_H
#define VRAMYARD_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

// The most intervals with contents. A copy or fill beyond them is not kept: its bytes read as zeros
// and are unknown. Each copy or fill makes one interval, which later ones may shorten or split.
const size_t most_intervals = 1 << 18;

// Each function is O(log n) of n intervals with contents, plus the bytes; a new interval also moves
// the descriptions of those behind it.

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

// Locks out the other threads while this one forks.
void hold_contents();
void release_contents();

#endif
