// Package standin provides stand-ins for the CUDA libraries of a program, so that an unmodified
// PyTorch runs without a GPU and its memory is a simulated device. PyTorch's own allocator makes
// every decision; only the device below it is ours.
//
// # Libraries
//
// A stand-in has to export every name that the program's objects import from the library, under the
// same SONAME and version node. [Scan] reads these names from an installed PyTorch, without
// importing it, and [Facts.Build] compiles the libraries once and keeps them in the user's cache. A
// process that loads them before anything else uses them for every later request of the same
// SONAME.
//
// Files of native/ model functions: memory, devices, streams, events, pools, graphs and virtual
// memory of the runtime and the driver, and what PyTorch reads from the math libraries. The file
// native/functions.txt says what the other functions do: kernels succeed and compute nothing, and a
// function that nobody described fails with a line that names it.
//
// # Device
//
// [Listen] serves the devices. Each process connects to the Unix socket in the variable
// VRAMYARD_SOCKET at its first call; calls that take, release or map memory cross it, everything
// else is answered in the process. A forked child of a process that used a device gets an
// initialization error, as with CUDA. The memory of a process is released when it ends.
//
// In the process, the memory of a device is address space without pages. What the program copies or
// fills itself, up to [Config.Keep] bytes at a time, has its contents until the block that it is in
// is freed; everything else, and so every result of a kernel, reads as zeros.
//
// The host of plug-ins (package plugin) uses the same libraries over its own connection.
//
// # Source
//
// Layouts and numbers are those of the documented interfaces of CUDA 11 to 13. docs/without-gpu.md
// says how the answers compare with recordings of real cards.
package standin
