// Package mapped tracks the memory that a device has mapped into its address ranges, and validates
// calls about it.
//
// It is the part of [device.VirtualMemory] shared by simulated and real devices: a real device may
// pass nothing to its driver that could corrupt memory, and both return the same error for the same
// mistake.
package mapped
