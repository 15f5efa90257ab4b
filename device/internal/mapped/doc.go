// Package mapped keeps which memory a device has mapped into its ranges of addresses, and judges
// calls about it.
//
// It is the part of [device.VirtualMemory] that a simulated device and a real one have in common:
// the real one may pass nothing to its driver that could corrupt memory, and both name a mistake by
// the same error.
package mapped
