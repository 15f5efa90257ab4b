package remat

import (
	"math"
	"math/bits"
)

// exactInt bounds the integers that a float64 represents exactly.
const exactInt = 1 << 53

// quotient returns n / (x·y) for x·y > 0, rounded once to the nearest float64, ties to even. A
// float product would be rounded as well, which could make or break ties between victims.
func quotient(n int64, x, y uint64) float64 {
	hi, lo := bits.Mul64(x, y)
	a := uint64(max(n, -n))
	if hi == 0 && lo <= exactInt && a <= exactInt {
		return float64(n) / float64(lo)
	}
	if a == 0 {
		return 0
	}
	q := divide(a, hi, lo)
	if n < 0 {
		return -q
	}
	return q
}

// divide returns a / (hi·2^64 + lo), rounded once. Both must be above 0.
func divide(a, hi, lo uint64) float64 {
	// Dividend and divisor are shifted until their highest bits are set. Their quotient, a 64-bit
	// integer of at least 63 bits, then has at least nine bits more than a float64 keeps. Its lowest
	// bit is set if there is a remainder, so that the conversion to float64 rounds correctly.
	shiftA := bits.LeadingZeros64(a)
	a <<= shiftA
	shiftD := bits.LeadingZeros64(hi)
	if hi == 0 {
		shiftD = 64 + bits.LeadingZeros64(lo)
	}
	hi, lo = shiftLeft(hi, lo, shiftD)
	q, rest := bits.Div64(a>>1, a<<63, hi)
	high, low := bits.Mul64(q, lo)
	over := false // rest exceeds 64 bits, so the estimate of the quotient needs no more correction
	for !over && (high > rest || high == rest && low > 0) {
		q--
		var carry, borrow uint64
		rest, carry = bits.Add64(rest, hi, 0)
		over = carry != 0
		low, borrow = bits.Sub64(low, lo, 0)
		high, _ = bits.Sub64(high, 0, borrow)
	}
	if over || high != rest || low != 0 {
		q |= 1
	}
	return math.Ldexp(float64(q), shiftD-shiftA-127)
}

func shiftLeft(hi, lo uint64, by int) (uint64, uint64) {
	if by >= 64 {
		return lo << (by - 64), 0
	}
	return hi<<by | lo>>(64-by), lo << by
}
