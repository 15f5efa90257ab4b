// Package pickle reads Python pickles that contain only data.
//
// A pickle is a program for a stack machine. The scanner accepts the opcodes of protocols 2 to 5
// that build lists, dictionaries, tuples, strings and numbers. It rejects, by name, every opcode
// that could import, call or build anything else. The caller implements the stack and the memo. The
// scanner holds at most one string at a time, and allocates nothing for a claimed length before its
// bytes have arrived.
package pickle
