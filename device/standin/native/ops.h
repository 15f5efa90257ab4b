// What a stand-in asks the device for, and what the device answers. device/standin/serve.go has the
// same numbers in Go, and a test compares the two.
#ifndef VRAMYARD_OPS_H
#define VRAMYARD_OPS_H

#include <stdint.h>

// A call of the device. The upper 32 bits of the word that carries it hold the number of the device.
enum device_op : uint64_t {
  DEVICE_RESERVE = 1,     // size -> address
  DEVICE_RELEASE,         // address
  DEVICE_INFO,            // -> free bytes, all bytes
  DEVICE_NEW_EVENT,       // -> event
  DEVICE_DESTROY_EVENT,   // event
  DEVICE_RECORD,          // event, stream
  DEVICE_DONE,            // event -> 1 if it is
  DEVICE_WAIT,            // stream, event
  DEVICE_SYNC_EVENT,      // event
  DEVICE_SYNC_STREAM,     // stream
  DEVICE_SYNC,            //
  DEVICE_STREAM_DONE,     // stream -> 1 if it is
  DEVICE_GRANULARITY,     // -> bytes
  DEVICE_RESERVE_RANGE,   // size, alignment, address -> address
  DEVICE_RELEASE_RANGE,   // address
  DEVICE_CREATE,          // size -> handle
  DEVICE_RELEASE_HANDLE,  // handle
  DEVICE_MAP,             // address, size, handle, offset
  DEVICE_SET_ACCESS,      // address, size, access
  DEVICE_UNMAP,           // address, size
  DEVICE_NEW_POOL,        // -> pool
  DEVICE_DESTROY_POOL,    // pool
  DEVICE_ALLOC_ASYNC,     // pool, size, stream -> address
  DEVICE_FREE_ASYNC,      // address, stream
  DEVICE_TRIM_POOL,       // pool, bytes to keep
  DEVICE_POOL_GET,        // pool, attribute -> value
  DEVICE_POOL_SET,        // pool, attribute, value
  DEVICE_LOOKUP,          // address -> start and size of the memory that it lies in
  DEVICE_EXPORT_TABLE,    // only NVIDIA's own runtime asks for it
  DEVICE_MARK,            // one of mark_kind, number: the program says what happens
};

// What a program marks.
enum mark_kind : uint64_t {
  MARK_STEP = 1,       // the optimizer ended step number
  MARK_OUT_OF_MEMORY,  // the allocator of the program gave up; number is the request
  MARK_RAISED = 4,     // an exception ends the program; number is 1 if it is for lack of memory, else 0
  MARK_WAITED = 15,    // the allocator of the program waits for events before it reuses a block
  MARK_GUESSED = 16,   // first of the marks of guessed_kind: number calls took a guessed work area
};

// Calls of libraries whose work area the stand-ins do not know, by kind.
enum guessed_kind : int {
  GUESSED_CONVOLUTION = 0,  // of cuDNN
  GUESSED_RECURRENT,        // of cuDNN
  GUESSED_OTHER,            // of cuDNN, cuSOLVER, cuSPARSE or cuFFT
  GUESSED_KINDS,
};

// The status of an answer.
enum device_answer : uint64_t {
  ANSWER_DONE = 0,
  ANSWER_OUT_OF_MEMORY,
  ANSWER_INVALID,
  ANSWER_UNSUPPORTED,
  ANSWER_NOBODY,  // there is no instance that could be asked
  ANSWER_FAILED,  // any other error
};

#endif
