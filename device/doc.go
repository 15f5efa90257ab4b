// Package device defines addresses and sizes of device memory, and the interfaces of devices that
// hand out regions of it.
//
// Nothing above this package dereferences device memory: an [Addr] is a number. All metadata of an
// allocator is on the host, so the same allocator runs on a simulated card
// ([github.com/vramyard/vramyard/device/sim]) and on a real one.
//
// The package holds:
//
//   - [Addr], [Size] and [Stream], distinct types so that addresses cannot be added, and alignment
//     arithmetic for them;
//   - [Source], the minimum that an allocator needs: reserve and release regions;
//   - [Device], a source with an account of its regions and calls;
//   - [Faults], a wrapper that injects failures.
package device
