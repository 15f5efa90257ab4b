package bfc

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

const (
	// unit is the quantum of sizes and addresses: the driver's alignment, which suits every copy
	// engine.
	unit device.Size = 256

	// maxRequest is the largest size that can be rounded up to a multiple of unit.
	maxRequest = ^device.Size(0) - unit + 1

	// numBins size classes double from 256 B; the last, from 256 MiB, is open-ended.
	numBins = 21

	// defaultWaste is the waste in bytes from which a chunk is always split.
	defaultWaste = 128 * device.MiB

	// backpedalFactor is the share of a refused size to ask for next. It is a 32-bit
	// float, and the product too: from 402654464 bytes on exact arithmetic would round to
	// other sizes.
	backpedalFactor float32 = 0.9
)

// roundUp rounds n up to a multiple of unit.
//
// Precondition: n <= maxRequest.
func roundUp(n device.Size) device.Size {
	return (n + unit - 1) &^ (unit - 1)
}

// binOf returns the bin of chunks of n bytes: bin b starts at unit<<b.
func binOf(n device.Size) int32 {
	return int32(min(numBins-1, bits.Len64(uint64(max(n, unit)/unit))-1))
}

// binSize returns the size at which bin b starts.
func binSize(b int32) device.Size { return unit << b }

// backpedal returns the next size to request after the device refused n bytes: nine tenths, rounded
// up. At 2304 bytes and below, rounding up undoes the step, and the original of 2024 requests the
// same size forever. XLA of 2026 subtracts one unit there, and so does this function for every
// variant.
//
// Precondition: n is a multiple of unit and not zero.
func backpedal(n device.Size) device.Size {
	if next := tenthLess(n); next < n {
		return next
	}
	return n - unit
}

// tenthLess returns nine tenths of n, rounded up, in the single precision of the original.
func tenthLess(n device.Size) device.Size {
	product := float32(n) * backpedalFactor
	return roundUp(device.Size(product))
}

// doubled returns twice n, or the largest multiple of unit where that overflows. The
// original wraps to zero there and then doubles zero forever.
func doubled(n device.Size) device.Size {
	if n > maxRequest/2 {
		return maxRequest
	}
	return 2 * n
}

// wasteLimit returns the bytes a block may waste under a configuration. The variant of
// 2016 has no such limit.
func wasteLimit(c Config) device.Size {
	if c.Variant == V2016 {
		return ^device.Size(0)
	}
	if c.FragmentationFraction > 0 {
		return device.Size(int64(c.FragmentationFraction * float64(c.Limit)))
	}
	return defaultWaste
}

// mostFirst is the most bytes of the first region of a growing allocator.
const mostFirst = 2 * device.MiB

// firstRegion returns the size the first region is meant to have.
func firstRegion(c Config) device.Size {
	limit := min(c.Limit, maxRequest)
	switch {
	case !c.AllowGrowth:
		return roundUp(limit)
	case c.Variant == V2016:
		return roundUp(min(limit, device.MiB))
	default:
		return roundUp(min(limit, mostFirst))
	}
}
