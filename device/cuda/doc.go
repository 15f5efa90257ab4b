// Package cuda is a real NVIDIA GPU through the CUDA driver API.
//
// The driver is loaded at run time, without cgo and without a toolkit, so that programs with this
// package build and run everywhere. Without a driver, [Open] and [List] return [ErrNoDriver] with
// the path that was tried.
//
// Loading needs the C library, so a program on Linux is not static even without cgo. With the build
// tag nocuda there is no driver, and the program is static.
//
// # The device
//
// A [Device] is the primary context of a GPU, which the CUDA runtime and PyTorch in the same
// process share. It has every capability of package device except the timeline.
//
//   - Regions use cuMemAlloc and cuMemFree. Sizes are rounded up to 512 bytes. An alignment that
//     the driver does not provide is obtained by a larger allocation.
//   - Virtual memory uses cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess and their
//     inverses. Handles are mapped from their start only, as the driver requires. A call that spans
//     several mappings or ranges makes several driver calls.
//   - Streams are non-blocking and created on first use; stream 0 is the driver's default. With
//     Config.ForeignStreams a number is a CUstream of the caller.
//   - Pools use cuMemAllocFromPoolAsync; pool 0 is the device's default pool.
//   - Contents are written by cuMemset and read by copies to the host, and wait for the default
//     stream.
//
// The package checks what the driver does not check: every mistake that package device defines has
// its sentinel error; stale and foreign handles, events and pools are rejected; and nothing that
// could corrupt memory is passed to the driver.
//
// # Errors
//
// A failed driver call is an [Error] with the function, number, name and text. errors.Is matches
// [device.ErrOutOfMemory], [device.ErrInvalid] and [device.ErrUnsupported] where they apply.
//
// # Threads
//
// A context is current on a thread of the operating system. Each call locks its goroutine to the
// thread, pushes the context, and pops it again. So any goroutine may call, one at a time, and a
// host program keeps its current context.
//
// While a thread captures a CUDA graph in the default mode, calls that could wait for the GPU, such
// as cuMemAlloc, fail on every thread of the process and invalidate the capture. So each call
// switches its thread to the relaxed capture mode and back, like PyTorch's allocator. Calls that
// contradict a capture still fail: a synchronisation of the captured stream, or a query of an event
// recorded in it.
//
// # Account and time
//
// [device.Usage] is this program's share of the GPU, tracked here. The size of a pool is queried
// after calls that change it. Config.Limit is enforced here, too. Times are measured around the
// driver calls, including their overhead, but without the queries for the account.
//
// The source is NVIDIA's documentation of the driver API, versions 11.2 to 13.
package cuda
