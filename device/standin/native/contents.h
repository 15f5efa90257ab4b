// The contents of device memory that a program wrote itself, by copies and fills of moderate size.
// Everything else reads as zeros.
#ifndef VRAMYARD_CONTENTS_H
#define VRAMYARD_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

// Writes, reads or forgets size bytes at an address. O(log n) of n intervals with contents, plus
// the bytes.
void write_contents(uint64_t at, const void *from, size_t size);
void read_contents(void *to, uint64_t at, size_t size);
void forget_contents(uint64_t at, size_t size);

#endif
