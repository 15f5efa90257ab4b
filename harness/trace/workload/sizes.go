package workload

import (
	"math/bits"

	"github.com/vramyard/vramyard/device"
)

// Sizes draws the size of a request in bytes. It does not allocate.
type Sizes func(*Rand) device.Size

// quantum is the alignment in bytes of the sizes of w1 and lognormal, as of device memory.
const quantum device.Size = 256

// RoundedUp returns the same sizes rounded up to multiples of unit, a power of two of bytes.
func (s Sizes) RoundedUp(unit device.Size) Sizes {
	return func(r *Rand) device.Size { return roundUp(s(r), unit) }
}

// roundUp returns the next multiple of unit, a power of two.
func roundUp(n, unit device.Size) device.Size { return (n + unit - 1) &^ (unit - 1) }

// Uniform returns sizes from least to most bytes, all equally likely.
//
// Precondition: least <= most.
func Uniform(least, most device.Size) Sizes {
	return func(r *Rand) device.Size { return least + device.Size(r.Below(uint64(most-least)+1)) }
}

// LogUniform returns sizes in [least, most) bytes whose logarithm is uniform: as many between 1 and
// 2 KiB as between 1 and 2 MiB.
//
// Precondition: least and most are powers of two, least <= most.
func LogUniform(least, most device.Size) Sizes {
	low, high := log2(least), log2(most)
	return func(r *Rand) device.Size { return exp2(low + int64(r.Below(uint64(high-low)))) }
}

// Lognormal returns sizes with a median of 4 KiB and a sigma of 1.5, from 2 B to 16 MiB.
func Lognormal() Sizes {
	return lognormal{log2(4 * device.KiB), 141_822, 1 << 16, log2(16 * device.MiB)}.draw
}

// steadySizes returns the sizes of w1: a median of 128 KiB, a sigma of 2.5 octaves.
func steadySizes() Sizes {
	return Sizes(lognormal{log2(128 * device.KiB), 5 << 15, log2(256), log2(64 * device.MiB)}.draw).RoundedUp(quantum)
}

// lognormal is an approximately lognormal distribution of sizes. All fields are base-2 logarithms
// of bytes with 16 fractional bits.
type lognormal struct {
	median int64 // half of the sizes are smaller
	sigma  int64 // standard deviation: sigma of the natural logarithm divided by ln 2
	least  int64 // smaller values are clamped
	most   int64 // larger values are clamped
}

// draw draws a size with integer arithmetic only. The sum of the twelve 16-bit parts of three
// random numbers is nearly normal with a standard deviation of 65536, which is 1 with 16 fractional
// bits.
func (l lognormal) draw(r *Rand) device.Size {
	const mean = 12 * 0xffff / 2 // of the sum
	var sum int64
	for range 3 {
		n := r.Next()
		sum += int64(n&0xffff + n>>16&0xffff + n>>32&0xffff + n>>48)
	}
	return exp2(min(max(l.median+(sum-mean)*l.sigma>>16, l.least), l.most))
}

// log2 returns the base-2 logarithm of n, a power of two, with 16 fractional bits.
func log2(n device.Size) int64 { return int64(bits.Len64(uint64(n))-1) << 16 }

// exp2 returns the power of two of x, which has 16 fractional bits, interpolated between
// whole powers.
func exp2(x int64) device.Size {
	k, f := x>>16, device.Size(x&0xffff)
	return 1<<k + f<<k>>16
}
