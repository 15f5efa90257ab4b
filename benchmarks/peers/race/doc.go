// Command race times foreign allocators beside the strategies of this repository. Each foreign
// allocator is a driver: a program in a folder that the user names, which reads a file of
// operations and reports its time. Our strategies run in the same way, in a child process of this
// program, so that every run is a separate process. A strategy whose name ends in * frees by
// reference.
//
// Before the timed rounds, each driver writes the placement of every block. Live blocks must not
// overlap, and the hash of the operations that the driver read must be the workload's. The rounds
// are interleaved: A B C, A B C.
//
// # Drivers
//
// A driver is started with one or two arguments and writes one JSON object to its standard
// output. Anything on standard error and an exit status other than 0 end the race.
//
//	driver OPERATIONS              run the untimed part, then the churn, and time that
//	driver OPERATIONS PLACEMENTS   run everything and write where each block lies
//
//	{"about": "name and commit, compiler", "hash": "4dcbe3d1d3fd68d1", "ns": 41000000, "heap_bytes": 98304, "by_address": false}
//
// OPERATIONS is a file of little-endian 64-bit words. The header has five: the bytes VRAMOPS1, the
// number of slots, the number of untimed operations, the number of timed operations (the churn),
// and the bytes of the address range. Each operation is a word: the slot in the upper 24 bits, and
// in the lower 40 the bytes to allocate into the slot, or 0 to free its block.
//
// PLACEMENTS is a file of words too: the offset of each block that is allocated, in order,
// a multiple of 256.
//
// The field "hash" is the 64-bit FNV-1a over slot and size of every operation, eight bytes each;
// "ns" the CPU time of the thread for the churn, 0 with two arguments; "heap_bytes" the growth of
// the heap from before the construction of the allocator until the churn, 0 if unknown. If all
// operations are timed, the churn is run once before on a discarded allocator, and "heap_bytes" is
// the growth until the end. The field "by_address" is true if blocks are freed by address, false if
// by a handle of the allocator. After a refused request the driver exits with a nonzero status.
package main
