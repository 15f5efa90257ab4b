// Package cuda is a real NVIDIA GPU through the CUDA driver API.
//
// The driver is loaded when it is needed, without cgo and without a toolkit, so that a program that
// imports this package builds and runs everywhere. Where there is no driver, [Open] and [List]
// answer [ErrNoDriver] and say what was looked for.
//
// What loads the driver is linked to the C library, so a program on Linux is not static even
// without cgo. With the build tag nocuda nothing loads it: there is no driver, and the program is
// static.
//
// # The device
//
// A [Device] is the primary context of one GPU, which is also that of the CUDA runtime and of
// PyTorch in the same process. It has every capability of package device but the timeline: what
// work there is and when it has finished, a real device finds out by itself.
//
//   - Regions are cuMemAlloc and cuMemFree. Their size is what was asked for, rounded up to 512
//     bytes. An alignment that the driver does not give by itself is got by asking for more.
//   - Virtual memory is cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess and what takes
//     them back. Handles are mapped from their start only, as the driver wants it. One call of ours
//     that spans several mappings or ranges is several of the driver's.
//   - Streams are non-blocking ones, made when their number is named first; stream 0 is the
//     driver's default. With Config.ForeignStreams a number is itself a CUstream, of whoever made
//     it.
//   - Pools are those of cuMemAllocFromPoolAsync; pool 0 is the device's default pool.
//   - Contents are written by cuMemset and read by copies to the host, and wait for the default
//     stream.
//
// What the driver does not check, or answers in its own way, is checked here: each mistake that
// package device names has its sentinel, handles, events and pools that are gone or of another
// device are found out, and nothing is passed to the driver that could corrupt memory.
//
// # Errors
//
// What the driver refuses is an [Error], with the function, number, name and text; errors.Is finds
// [device.ErrOutOfMemory], [device.ErrInvalid] and [device.ErrUnsupported] in those that mean it.
//
// # Threads
//
// A context belongs to a thread of the operating system. Each call locks its goroutine to the
// thread, pushes the context, and pops it again, so that any goroutine may call, one at a time, and
// a host program keeps the context that it had.
//
// While a thread captures a CUDA graph, in the mode that is the default, no thread of the process
// may call what could wait for the GPU, cuMemAlloc among it: the call fails and the capture is
// lost. So each call also puts its thread into the relaxed mode of capture and back, as PyTorch's
// own allocator does. What contradicts a capture as such fails all the same: a synchronisation of
// the stream that is captured, or a query of an event that was recorded in it.
//
// # Account and time
//
// [device.Usage] is kept here, not asked for: it is this program's share of the GPU. Memory of
// pools is asked for after calls that change it. A Config.Limit is kept here, too. Times are
// measured around the calls of the driver alone, entry and return included; what is asked for the
// account is not in them.
//
// The source is NVIDIA's documentation of the driver API, versions 11.2 to 13.
package cuda
