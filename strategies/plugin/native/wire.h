// What the program and a host share: memory that both have mapped. channel_linux.go has the same
// layout in Go, and a test compares the two.
//
// The program asks for calls of the plug-in, the stand-ins ask for calls of the device. Each
// question has a number, and its answer the same one. Who waits looks a while, and then sleeps and
// says so, so that only then somebody has to be woken.
#ifndef VRAMYARD_WIRE_H
#define VRAMYARD_WIRE_H

#include "ops.h"

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
