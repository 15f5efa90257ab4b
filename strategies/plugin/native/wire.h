// The memory that the program and an instance share. channel_linux.go has the same layout in Go, and a
// test compares the two.
//
// The program requests calls of the plug-in, the stand-ins request calls of the device. Each request
// has a sequence number, and its answer has the same number. The waiting side spins for a while. Then
// it sets its sleep flag and sleeps, so the other side makes a system call only to wake a sleeper.
#ifndef VRAMYARD_WIRE_H
#define VRAMYARD_WIRE_H

#include "ops.h"

// The calls that the program requests.
enum call_op : uint64_t {
  CALL_START = 1,  // load the plug-in unless it is loaded, then call init with arg[0] devices
  CALL_ALLOC,      // arg: size, device, stream; result: address
  CALL_FREE,       // arg: address, size, device, stream
  CALL_RESET,      // no arguments
  CALL_RECORD,     // arg: address, stream
  CALL_BASE,       // arg: address, size; result: base, and the size in extra
};

// The ends of a call.
enum call_verdict : uint64_t {
  VERDICT_RETURNED = 0,
  VERDICT_THREW,     // text is the text of the exception
  VERDICT_UNLOADED,  // the plug-in cannot be loaded; text is the reason
};

struct wire {
  uint32_t call_asked, call_answered;      // sequence numbers of requests and answers
  uint32_t host_sleeps, program_sleeps;    // whether that side sleeps
  uint32_t device_asked, device_answered;  // sequence numbers of requests and answers
  uint32_t device_sleeps;                  // whether a thread of the plug-in sleeps
  uint32_t gone;                           // the host has ended

  uint64_t call, arg[4], result, extra, verdict;
  uint64_t ns;  // of the call, without device calls and round trips
  uint64_t device, device_arg[4], device_result[2], device_verdict;

  uint64_t signal, fault;  // the signal that ended the instance, and the faulting address
  uint64_t status;         // exit status, as waitpid returns it
  char text[1024];
};

#endif
