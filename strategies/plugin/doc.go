// Package plugin runs a third-party allocator from a shared object, in the form that PyTorch
// accepts (torch.cuda.memory.CUDAPluggableAllocator): two C functions,
//
//	void *NAME1(size_t size, int device, cudaStream_t stream);
//	void  NAME2(void *ptr, size_t size, int device, cudaStream_t stream);
//
// and up to five optional ones ([Config]). On a command line it is named
// plugin:PATH?alloc=NAME1&free=NAME2; docs/plugins.md is the user's guide.
//
// # Processes
//
// Third-party code may crash, hang, exit, throw, print and write anywhere, so none of it runs in
// this program. A small host program, whose C++ source is embedded and compiled at first use into
// the user's cache, loads the shared object. Each instance is forked from the host before any
// function of the plug-in was called. So every instance starts fresh and costs a millisecond or
// two, and a verification can use thousands. A crash is reported as a [Fault] by the call in which
// it happened and affects no other instance. A plug-in that starts threads or calls the device
// while it is loaded is loaded after the fork, because a fork does not copy threads.
//
// Program and instance share one page of memory. The caller writes the arguments of a call, then
// its sequence number. The other side spins on the number for a while, then sleeps until it is
// woken.
//
// # The device
//
// Plug-ins call CUDA. The host's search path begins with stand-in libraries of the same names, made
// from embedded source. They forward each call over the shared page to the [device.Source] of the
// strategy, so capacity, injected faults, counters, costs and addresses are the same as for any
// other strategy. There is no memory behind the addresses: a plug-in that touches it is killed.
//
// # Inspection
//
// From outside, only the live blocks and the memory held from the device are known. Each returned
// block must be aligned, lie within this memory and be disjoint from every live block; released
// memory must not contain a live block. Only the plug-in knows the state of other memory: Walk
// shows it as free, in chunks as large as possible, so figures computed from free chunks are a best
// case. Search order and size classes are unknown.
//
// # Time
//
// The clock is read in the host, around each call. It excludes the round trip and device calls, and
// the cost of an empty call is subtracted ([power.SelfTimed]).
//
// # Cost
//
// Alloc and Free cost a round trip between two processes and O(log live blocks): about 20 µs on
// shared cores. A refusal costs a walk.
//
// # Source
//
// The ABI is that of torch/csrc/cuda/CUDAPluggableAllocator.h and .cpp of PyTorch 2.6.
package plugin
