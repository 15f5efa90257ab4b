package replay

import (
	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// maxLooks bounds how often a replay looks at external fragmentation.
const maxLooks = 1 << 16

// lookStride returns the power of two such that looking after every stride-th event of n
// makes at most maxLooks looks.
func lookStride(n int) int {
	stride := 1
	for n/stride > maxLooks {
		stride *= 2
	}
	return stride
}

// external returns 1 - largest free chunk / free bytes: how far the free bytes are from
// being one piece. It is 0 while less than 1 % of what is reserved is free, because the
// shape of next to nothing says nothing.
func external(s alloc.Inspector, active, reserved device.Size) float64 {
	free := reserved - active
	if free == 0 || free < reserved/100 {
		return 0
	}
	return 1 - float64(alloc.LargestFree(s))/float64(free)
}

// ratio returns 1 - part/whole, and 0 where there is no whole.
func ratio(part, whole device.Size) float64 {
	if whole == 0 {
		return 0
	}
	return 1 - float64(part)/float64(whole)
}

// headroom returns the largest request that a free chunk in hand would serve.
func headroom(s alloc.Inspector) device.Size {
	return min(alloc.LargestFree(s), alloc.MaxRequest(s))
}
