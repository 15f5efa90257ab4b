// Package regions manages the device memory of a strategy.
//
//   - [Set]: the regions reserved from the device, by address, with their statistics.
//   - [Pool]: a [Set] with a growth policy, which chooses the size of the next region and returns
//     empty regions.
//   - [Memory]: ranges of address space in which pages are mapped and unmapped.
package regions
