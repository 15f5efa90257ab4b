// Package plugin runs an allocator of others out of a shared object, in the form in which PyTorch
// takes one (torch.cuda.memory.CUDAPluggableAllocator): two C functions,
//
//	void *NAME1(size_t size, int device, cudaStream_t stream);
//	void  NAME2(void *ptr, size_t size, int device, cudaStream_t stream);
//
// and up to five optional ones ([Config]). A command line names it
// plugin:PATH?alloc=NAME1&free=NAME2; docs/plugins.md is for who has one.
//
// # Processes
//
// Code of others may crash, hang, exit, throw, print and write anywhere, so none of it runs in this
// program. A small host, whose C++ source is embedded and compiled at first use into the user's
// cache, loads the shared object and is forked for each instance, before any function of the
// plug-in was called: each instance is as fresh as the first one and costs a millisecond or two, so
// that a verification can have thousands. What an instance does to itself is told by the call that
// met it, as a [Fault], and nobody else notices. A plug-in that starts threads while it is loaded,
// or asks for the device, is loaded after the fork, because a fork would not take that along.
//
// Program and instance share one page of memory. A call is a number and a few words in it; the
// other side looks for the number a while, then sleeps until it is woken.
//
// # The device
//
// Plug-ins call CUDA. The host has libraries of the same names first in its search path, made from
// embedded source too: their entry points go back over the shared page and are calls of the
// [device.Source] that the strategy was given, so that capacity, refusals on a plan, counters,
// costs and addresses are those of any other strategy. There is no memory behind the addresses: a
// plug-in that touches it is killed.
//
// # What is looked at
//
// From outside, the live blocks and what the device gave out are known. Each block that is returned
// has to be aligned, to lie in one piece of that memory, and to share no byte with a live block;
// memory that goes back may hold none. What is not live is of a state that only the plug-in knows:
// Walk shows it as free, in chunks as large as can be, and what is computed of free chunks is
// therefore the best that can be true. There is no search, no class and no order to look at.
//
// # Time
//
// The clock is read in the host, around each call: without the way there, without what the device
// took, and less what the same takes for a function that does nothing ([power.SelfTimed]).
//
// # Cost
//
// Alloc and Free cost a round trip between two processes and O(log live blocks): about 20 µs where
// cores are shared with others. A refusal costs a walk.
//
// # Source
//
// The ABI is that of torch/csrc/cuda/CUDAPluggableAllocator.h and .cpp of PyTorch 2.6.
package plugin
