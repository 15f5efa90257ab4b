// Package vramyard is a proving ground for GPU memory allocators. This package holds no
// code; it lists the layers. Imports lead down the list, never up:
//
//	cmd/vramyard   the program over our strategies
//	cli            the program over any strategies: compare, replay, trace and the other commands
//	props          what every allocator must do, proved by driving one
//	harness        traces, replays, comparisons, reports; knows no strategy by name
//	strategies     the allocators, one package each, and the catalogue of them
//	kit            the parts that strategies are made of
//	internal       shared tools for the layers above
//	alloc          the contract between an allocator and what drives or judges one
//	device         addresses, sizes, regions; the simulated GPU in device/sim
//
// Start with package alloc for the contract, with strategies for the allocators, and
// with docs/architecture.md for how the parts work together and why.
package vramyard
