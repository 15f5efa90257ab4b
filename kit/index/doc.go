// Package index holds the lookup structures that strategies are built from. Each is described at
// the top of its file.
//
//   - [AddrBuckets] and [AddrMap]: the handle of the block at an address. A hash table; O(1).
//   - [AddrList]: values in the order of addresses. Sorted leaves; O(log n).
//   - [Atlas]: the range that contains an address. A trie that adapts to the ranges; one to three
//     cache lines.
//   - [SizeMap]: the smallest free chunk that is large enough, the lowest of its size first. O(1)
//     amortized.
//   - [BitSet]: a set of small numbers with its minimum, maximum and successor. One word a level.
//   - [MaxTree]: the largest of many values that rarely change. A lazy tournament tree.
//
// None of them allocates in steady state, and none holds a pointer for each entry.
package index

import (
	"reflect"

	"github.com/vramyard/vramyard/device"
)

// BytesOf returns the host memory of a slice in bytes, unused capacity included.
func BytesOf[T any](s []T) device.Size {
	return device.Size(cap(s)) * device.Size(reflect.TypeFor[T]().Size())
}
