// Package device is the ground floor: addresses and sizes of device memory, and
// the source that hands out regions of it.
//
// Nothing above this package dereferences device memory. An [Addr] is a number;
// what lies there is the device's own affair. All metadata of an allocator lives
// on the host, off to the side, so that the same allocator runs over a simulated
// card ([github.com/vramyard/vramyard/device/sim]) and over a real one.
//
// The package holds:
//
//   - [Addr], [Size] and [Stream], types of their own so that an address is never
//     added to an address, and alignment arithmetic over them;
//   - [Source], the narrowest thing an allocator needs: reserve a region, release it;
//   - [Device], a source that also tells what it has handed out and how often it was asked;
//   - [Faults], a wrapper that makes a device refuse calls on a plan.
package device
