// Command race times allocators that are not in this program beside the strategies of this
// house. Each of them is a driver: a program in a folder that the user names, which reads a file
// of operations and says how long it took. Our strategies are driven the same way, by this
// program started again, so that every run is a process of its own.
//
// Before anything is timed, each driver shows where it places every block. Nobody may place
// two live blocks over each other, and the hash that it gives of what it read has to be
// that of the workload. Then the rounds follow, interleaved: A B C, A B C.
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
// OPERATIONS is a file of words of 64 bits, lowest byte first. Five of them are the header: the
// bytes VRAMOPS1, the number of slots, that of untimed operations, that of the churn's, and the
// bytes of the range that blocks are placed in. Each operation is a word: the slot in the
// upper 24 bits, the bytes to allocate into it in the lower 40, 0 to free what it holds.
//
// PLACEMENTS is a file of words too: the offset of each block that is allocated, in order,
// a multiple of 256.
//
// The field "hash" is FNV-1a with 64 bits over slot and size of every operation, eight bytes
// each; "ns" the CPU time of the thread for the churn, 0 with two arguments; "heap_bytes" what
// the heap grew by from before the allocator is made until the churn, 0 if that is not known.
// Where nothing is untimed, the churn is run once before, on an allocator that is thrown away,
// and "heap_bytes" is what the heap grew by until the end. The field "by_address" is true if a
// block is freed by its address alone, false if the driver keeps a name of the allocator's
// for it. A request that is refused ends the run with a status other than 0.
package main
