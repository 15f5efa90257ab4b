// What the program and a host share: memory that both have mapped. channel_linux.go has the same
// layout in Go, and a test compares the two.
//
// The program asks for calls of the plug-in, the stand-ins ask for calls of the device. Each
// question has a number, and its answer the same one. Who waits looks a while, and then sleeps and
// says so, so that only then somebody has to be woken.
#ifndef VRAMYARD_WIRE_H
#define VRAMYARD_WIRE_H

#include <stdint.h>

// What the program asks a host for.
enum call_op : uint64_t {
  CALL_START = 1,  // load the plug-in, if that was not done, and tell it of arg[0] devices
  CALL_ALLOC,      // arg: size, device, stream; result: address
  CALL_FREE,       // arg: address, size, device, stream
  CALL_RESET,      //
  CALL_RECORD,     // arg: address, stream
  CALL_BASE,       // arg: address, size; result: base, and the size in extra
};

// How a call ended.
enum call_verdict : uint64_t {
  VERDICT_RETURNED = 0,
  VERDICT_THREW,     // text is what the exception says
  VERDICT_UNLOADED,  // text says why the plug-in cannot be loaded
};

// What a stand-in asks the device for.
enum device_op : uint64_t {
  DEVICE_RESERVE = 1,     // size -> address
  DEVICE_RELEASE,         // address
  DEVICE_INFO,            // -> free, total
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
  DEVICE_NEW_POOL,        // most bytes -> pool
  DEVICE_DESTROY_POOL,    // pool
  DEVICE_ALLOC_ASYNC,     // pool, size, stream -> address
  DEVICE_FREE_ASYNC,      // address, stream
  DEVICE_TRIM_POOL,       // pool, bytes to keep
  DEVICE_POOL_GET,        // pool, attribute -> value
  DEVICE_POOL_SET,        // pool, attribute, value
  DEVICE_LOOKUP,          // address -> start and size of the memory that it lies in
  DEVICE_EXPORT_TABLE,    // what only a runtime of NVIDIA's asks for
};

// What the device answers.
enum device_answer : uint64_t {
  ANSWER_DONE = 0,
  ANSWER_OUT_OF_MEMORY,
  ANSWER_INVALID,
  ANSWER_UNSUPPORTED,
  ANSWER_NOBODY,  // no instance is there that could be asked
};

struct wire {
  uint32_t call_asked, call_answered;      // numbers of questions
  uint32_t host_sleeps, program_sleeps;    // who has to be woken
  uint32_t device_asked, device_answered;  // numbers of questions
  uint32_t device_sleeps;                  // a thread of the plug-in has to be woken
  uint32_t gone;                           // the host has ended

  uint64_t call, arg[4], result, extra, verdict;
  uint64_t ns;  // that the call took, but for what the device and the way there took
  uint64_t device, device_arg[4], device_result[2], device_verdict;

  uint64_t signal, fault;  // that ends the host, and the address it is about
  uint64_t status;         // as waitpid tells it
  char text[1024];
};

#endif
